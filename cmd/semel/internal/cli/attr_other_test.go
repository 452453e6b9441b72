//go:build unix && !linux

package cli

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
