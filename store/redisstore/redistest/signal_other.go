//go:build !unix

package redistest

import "syscall"

// No process can be suspended here, so its signals do nothing.
const (
	signalFreeze = syscall.Signal(0)
	signalThaw   = syscall.Signal(0)
)
