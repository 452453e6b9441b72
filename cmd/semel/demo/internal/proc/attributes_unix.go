//go:build unix && !linux

package proc

import "syscall"

// attributes gives a child a group of its own, so that a terminal's Ctrl-C
// does not reach it before its parent has counted.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
