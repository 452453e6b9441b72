package redistest

import "syscall"

// ownAttr has a process die with the thread that started it.
func ownAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
