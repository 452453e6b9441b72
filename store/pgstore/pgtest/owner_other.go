//go:build !linux

package pgtest

import "os/exec"

// ownData runs cmd in dir, as the user who runs the test.
func ownData(cmd *exec.Cmd, dir string) error {
	cmd.Dir = dir
	return nil
}
