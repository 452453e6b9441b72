package cli

import "syscall"

// dieWithParent has a child end when the test process does, however that is.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
