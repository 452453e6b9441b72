//go:build !linux

package proctest

import "os/exec"

// dieWithParent does nothing: only Linux can tie a process to its parent.
func dieWithParent(*exec.Cmd) {}
