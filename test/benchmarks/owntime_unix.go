//go:build unix

package main

import (
	"syscall"
	"time"
)

// ownTime is the processor time of this process.
func ownTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail for the process itself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
