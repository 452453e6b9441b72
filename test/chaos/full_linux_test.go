package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/stores"
)

// While the disk is full, new calls fail before their handlers run, and recorded
// outcomes are replayed. When there is space again, calls go on, and no outcome is
// lost and no effect repeated. The disk is full by a limit on the size of files,
// which the kernel enforces on the worker and which needs no privilege.
func TestFullDisk_NewCallsFailAndReplaysGoOn(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			in := stores.StartSQLite(t)
			fullDisk(t, in, policy, "a limit on the size of files", func(w *process, spare uint64) {
				limitFiles(t, w.Pid(), size(in.URL+"-wal")+spare)
			}, func(w *process) { limitFiles(t, w.Pid(), noLimit) })
		})
	}
}

// The same on a full file system, such as a small tmpfs. SEMEL_TEST_FULL_DIR
// names a directory on it.
func TestFullFileSystem_NewCallsFailAndReplaysGoOn(t *testing.T) {
	dir := os.Getenv("SEMEL_TEST_FULL_DIR")
	if dir == "" {
		t.Skip("SEMEL_TEST_FULL_DIR names no directory on a small file system")
	}
	for _, policy := range policies {
		t.Run(policy.String(), func(t *testing.T) {
			own, err := os.MkdirTemp(dir, "chaos-") //nolint:usetesting // on the small file system
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(own) })
			filler := filepath.Join(own, "filler")
			fullDisk(t, stores.Instance{URL: filepath.Join(own, "chaos.db")}, policy, "a full file system", func(_ *process, spare uint64) {
				fill(t, filler, int64(spare))
			}, func(*process) {
				if err := os.Remove(filler); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// fullDisk calls squeeze, which leaves some bytes, then none.
func fullDisk(t *testing.T, in stores.Instance, policy semel.Policy, how string, squeeze func(w *process, spare uint64), release func(w *process)) {
	b, _ := stores.BackendNamed("sqlite")
	st := opened(t, b, in)
	e := sendOut(t, b, in, spec{Lanes: 10, Policy: policy, Lease: 300 * time.Millisecond, Settle: 100 * time.Millisecond})
	before, full := names("before", 30), names("full", 60)
	if figure.Long() {
		full = names("full", 400)
	}
	e.until(2*time.Minute, before)
	refused := 0
	classes := map[class]int{}
	for i, spare := range []uint64{64 << 10, 0} {
		squeeze(e.worker, spare)
		half := full[i*len(full)/2 : (i+1)*len(full)/2]
		for k, q := range e.run(half) {
			classes[q.Class]++
			switch {
			case q.Class == noStore && q.Fence == 0 && strings.Contains(q.Text, "sqlitestore: "):
				refused++
				if n := e.ledger.count(k); n != 0 {
					t.Errorf("%s: was refused, and took effect %d times", k, n)
				}
			case spare == 0:
				t.Errorf("%s: nothing fits, and it came to %s: %s", k, q.Class, q.Text)
			case q.Fence != 0 && q.Class != done && q.Class != notStored && q.Class != leaseLost:
				t.Errorf("%s: ran, and came to %s: %s", k, q.Class, q.Text)
			}
		}
		for k, q := range e.run(before) {
			if q.Class != done || !q.Replayed {
				t.Errorf("%s: with %d bytes left its answer is not replayed: %s %s", k, spare, q.Class, q.Text)
			}
		}
	}
	release(e.worker)
	e.until(2*time.Minute, append(full, before...))
	f := e.ledger.audit(policy)
	report(t, f.wrong)
	for k := range e.ledger.keys {
		if r, err := st.Get(t.Context(), record(k)); err != nil || string(r.Record.Outcome.Body) == "" {
			t.Errorf("%s: it is answered, and the record is %+v, %v", k, r.Record, err)
		}
	}
	if refused < len(full)/2 {
		t.Errorf("%d of %d calls were refused: the test has not met what it is for", refused, len(full))
	}
	figure.Report(t, figure.Figure{
		Claim: "while the disk is full new calls fail before their handlers run, recorded answers are repeated, and afterwards all goes on",
		Where: "sqlite, " + policy.String() + ", " + how, Trials: int64(len(full) + 2*len(before)), Failures: int64(len(f.wrong)),
		Detail: fmt.Sprintf("%d new calls refused without an effect, %d answers repeated meanwhile; new calls: %s; in the end %d keys, %d took effect twice (outcome did not fit), %d asked about",
			refused, 2*len(before), counts(classes), f.keys, f.repeated, e.ledger.asked),
	})
}

func names(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(prefix, i))
	}
	return list
}

func size(path string) uint64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return uint64(info.Size())
}

const noLimit = ^uint64(0)

// limitFiles sets how far a process can write into any file; the hard limit
// stays, so that it can be undone.
func limitFiles(t *testing.T, pid int, bytes uint64) {
	t.Helper()
	var now syscall.Rlimit
	if err := prlimit(pid, nil, &now); err != nil {
		t.Fatal(err)
	}
	now.Cur = min(bytes, now.Max)
	if err := prlimit(pid, &now, nil); err != nil {
		t.Fatal(err)
	}
}

func prlimit(pid int, set, get *syscall.Rlimit) error {
	const fileSize = 1 // RLIMIT_FSIZE
	_, _, e := syscall.Syscall6(syscall.SYS_PRLIMIT64, uintptr(pid), fileSize, uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// fill takes all room of a file system but so many bytes.
func fill(t *testing.T, path string, spare int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if spare > 0 {
		if err := f.Truncate(max(0, int64(size(path))-spare)); err != nil {
			t.Fatal(err)
		}
	}
}
