package kafkatest

import "syscall"

// diesWithParent has a process die with the thread that started it.
func diesWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
