package dboscompare

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// processorTime is the time that this process, and a server with its processes, have
// worked. Unlike the time that passes, it says something on a busy machine, too.
func processorTime(t *testing.T, dataDir string) (client, server time.Duration) {
	t.Helper()
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	main, _, _ := strings.Cut(string(text), "\n")
	paths, _ := filepath.Glob("/proc/[0-9]*/stat") // fails for a bad pattern only
	ticks := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ") // after the name, which may have spaces
		fields := strings.Fields(rest)
		parent, own := fields[1], filepath.Base(filepath.Dir(path)) == main
		if !own && parent != main {
			continue
		}
		last := 13 // utime and stime
		if own {
			last = 15 // and those of processes that have ended
		}
		for _, field := range fields[11:last] {
			n, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			ticks += n
		}
	}
	return time.Duration(own.Utime.Nano() + own.Stime.Nano()), time.Duration(ticks) * 10 * time.Millisecond
}
