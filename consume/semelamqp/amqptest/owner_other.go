//go:build !linux

package amqptest

import "syscall"

// ownerAttr is nothing special: the node ends when the tests end it.
func ownerAttr() *syscall.SysProcAttr { return nil }
