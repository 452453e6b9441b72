package proc

import "syscall"

// attributes gives a child a group of its own, so that a terminal's Ctrl-C
// does not reach it before its parent has counted, and ends it with its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
