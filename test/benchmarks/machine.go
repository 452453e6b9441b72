package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// thisMachine is the processor and its memory, without a name.
func thisMachine() string {
	cpu, memory := "unknown processor", ""
	info, _ := os.ReadFile("/proc/cpuinfo") // other systems: unknown
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			cpu = strings.TrimSpace(value)
			break
		}
	}
	var kib int
	info, _ = os.ReadFile("/proc/meminfo")
	if _, err := fmt.Sscanf(string(info), "MemTotal: %d kB", &kib); err == nil {
		memory = fmt.Sprintf(", %d GiB", kib>>20)
	}
	return fmt.Sprintf("%d cores (%s)%s, %s/%s", runtime.NumCPU(), cpu, memory, runtime.GOOS, runtime.GOARCH)
}

// commitOf is the commit of the working tree, with "-dirty" if something else than docs
// was changed, to which this program writes.
func commitOf(ctx context.Context, root string) string {
	b, err := exec.CommandContext(ctx, "git", "-C", root, "rev-parse", "--short=10", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	commit := strings.TrimSpace(string(b))
	if b, err = exec.CommandContext(ctx, "git", "-C", root, "status", "--porcelain", "--", ".", ":!docs").Output(); err != nil || len(b) > 0 {
		commit += "-dirty"
	}
	return commit
}

// tick is the unit of /proc on Linux.
const tick = 10 * time.Millisecond

// processTime is the processor time of a process, and of its children if family is
// set, those that have ended too; 0 without /proc.
func processTime(pid int, family bool) (sum time.Duration) {
	f := statOf(pid)
	if !family {
		return ticks(f, 2)
	}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)) // without them, only the process counts
	for text := range strings.FieldsSeq(string(children)) {
		if child, err := strconv.Atoi(text); err == nil {
			sum += ticks(statOf(child), 2)
		}
	}
	return sum + ticks(f, 4)
}

// statOf are the fields of a process's stat after its name; nil if it has ended.
func statOf(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, text, _ := strings.Cut(string(b), ") ")
	return strings.Fields(text)
}

// ticks is the sum of the first n of these fields: in user mode, in the kernel, and the
// same of children that have ended.
func ticks(fields []string, n int) (sum time.Duration) {
	if len(fields) < 15 {
		return 0
	}
	for _, text := range fields[11 : 11+n] {
		count, _ := strconv.Atoi(text)
		sum += time.Duration(count) * tick
	}
	return sum
}

// processors is the time of all processors since the start of the machine.
type processors struct{ all, busy, stolen float64 }

func readProcessors() (p processors) {
	b, _ := os.ReadFile("/proc/stat") // other systems: nothing is known
	line, _, _ := strings.Cut(string(b), "\n")
	for i, text := range strings.Fields(line) {
		n, _ := strconv.ParseFloat(text, 64)
		switch i {
		case 0, 9, 10: // the name, and guests, which are in other fields, too
		case 4, 5: // idle
			p.all += n
		case 8:
			p.stolen += n
			fallthrough
		default:
			p.all += n
			p.busy += n
		}
	}
	return p
}

// since are the percentages of busy and stolen time since before.
func (p processors) since(before processors) (busy, stolen float64) {
	all := max(p.all-before.all, 1)
	return 100 * (p.busy - before.busy) / all, 100 * (p.stolen - before.stolen) / all
}

// quietShare is the percentage of the processors that other processes may use when a
// round begins.
const quietShare = 20

// quiet waits until other processes are quiet, but not longer in all than the lab may
// wait, and notes how busy they are. The servers of the lab are idle between rounds.
func (l *lab) quiet(ctx context.Context) {
	for ctx.Err() == nil {
		before, began := readProcessors(), time.Now()
		<-time.After(l.opt.look)
		busy, _ := readProcessors().since(before)
		if busy <= quietShare || l.waited >= l.opt.wait {
			l.busy = append(l.busy, busy)
			return
		}
		l.waited += time.Since(began)
	}
}

// memoryOf is a field of a process's status in bytes, such as VmHWM, the most that it
// had in memory; 0 without /proc.
func memoryOf(pid int, field string) float64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, field+":"); ok {
			var kib float64
			_, _ = fmt.Sscan(text, &kib)
			return kib * 1024
		}
	}
	return 0
}
