//go:build unix

package redistest

import "syscall"

const (
	signalFreeze = syscall.SIGSTOP
	signalThaw   = syscall.SIGCONT
)
