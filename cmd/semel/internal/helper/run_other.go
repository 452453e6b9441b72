//go:build !unix

package helper

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
)

// Run runs the program and returns its exit code. Windows sends Ctrl+C to the program,
// too, so this process waits for it.
func Run(path string, args []string) (code int, err error) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	cmd := exec.Command(path, args...) //nolint:noctx // it ends by itself
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode(), nil
	}
	return 0, err
}
