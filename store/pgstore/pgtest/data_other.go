//go:build !linux

package pgtest

// dataRoot is where a server keeps its data: always in the temporary directory.
func dataRoot([]string) string { return "" }
