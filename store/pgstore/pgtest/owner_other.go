//go:build !linux

package pgtest

import "syscall"

// ownerAttr is the same for all: the server runs as the user who runs the test.
func ownerAttr(string) (*syscall.SysProcAttr, error) { return nil, nil }
