//go:build !linux

package semelamqp_test

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
