//go:build !linux

package sqlitestore

// networkFileSystem is not known here; Open's switch to WAL mode may tell.
func networkFileSystem(string) string { return "" }
