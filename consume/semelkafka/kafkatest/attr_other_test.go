//go:build !linux

package kafkatest

import "syscall"

func diesWithParent() *syscall.SysProcAttr { return nil }
