//go:build unix

package helper

import (
	"os"
	"syscall"
)

// Run replaces this process by the program, so that signals and the exit code are the
// program's own. It returns only if that fails.
func Run(path string, args []string) (code int, err error) {
	return 0, &os.PathError{Op: "exec", Path: path, Err: syscall.Exec(path, append([]string{path}, args...), os.Environ())}
}
