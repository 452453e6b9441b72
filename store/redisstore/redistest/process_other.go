//go:build !linux

package redistest

import "syscall"

// ownAttr is nothing: the process may outlive a test that is killed.
func ownAttr() *syscall.SysProcAttr { return nil }
