package pgtest

import (
	"slices"
	"syscall"
)

// dataRoot is where a server keeps its data: in memory, if there is room and its commits do
// not wait for the disk. Tests make and delete thousands of tables, and ext4 takes long to
// find a number for a new file after many were deleted. Empty: the temporary directory.
func dataRoot(settings []string) string {
	const memory, room = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if !slices.Contains(settings, "fsync=off") || syscall.Statfs(memory, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < room { //nolint:gosec // it is positive
		return ""
	}
	return memory
}
