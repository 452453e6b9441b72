package amqptest

import "syscall"

// ownerAttr has a process die with the thread that started it.
func ownerAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
