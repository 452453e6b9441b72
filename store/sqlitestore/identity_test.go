package sqlitestore

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Under two hard links a file would have two logs and two sets of locks, and two
// processes would grant every key.
func TestOpen_FileHasHardLink_IsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the number of links is not known there")
	}
	dir := t.TempDir()
	path, other := filepath.Join(dir, "semel.db"), filepath.Join(dir, "other.db")
	s := openAt(t, path, nil)
	if err := os.Link(path, other); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{other, path} {
		if st, err := Open(t.Context(), name, nil); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "2 hard links") {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	if err := s.Check(t.Context()); !errors.Is(err, ErrUnsafe) {
		t.Errorf("Check: %v", err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("Check, with one name again: %v", err)
	}
}

// A symbolic link is another way to the same file, log and locks.
func TestOpen_SymbolicLink_IsSameStore(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "link.db")
	path := filepath.Join(dir, "semel.db")
	one := openAt(t, path, nil)
	if err := os.Symlink(path, elsewhere); err != nil {
		t.Skip(err)
	}
	two := openAt(t, elsewhere, nil)
	claim(t, one, "k")
	if f, err := two.Claim(t.Context(), proposal("k")); err != nil || f.Won {
		t.Errorf("a second claim: won %v, error %v", f.Won, err)
	}
	if _, err := os.Stat(elsewhere + "-wal"); err == nil {
		t.Error("the link has a log of its own")
	}
	// The link leads to another file now, which new processes will open.
	if err := os.Remove(elsewhere); err != nil {
		t.Fatal(err)
	}
	openAt(t, filepath.Join(dir, "new.db"), nil)
	if err := os.Symlink(filepath.Join(dir, "new.db"), elsewhere); err != nil {
		t.Fatal(err)
	}
	if f, err := two.Claim(t.Context(), proposal("new")); !errors.Is(err, ErrUnsafe) || f.Won {
		t.Errorf("after the link was changed: won %v, error %v", f.Won, err)
	}
	claim(t, one, "new")
}

// Nothing is acknowledged in a file that other processes do not see.
func TestFile_RemovedOrReplaced_NothingIsAcknowledged(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be removed there")
	}
	for name, harm := range map[string]func(t *testing.T, path string){
		"removed": func(t *testing.T, path string) { remove(t, path) },
		"replaced": func(t *testing.T, path string) {
			other := path + ".new"
			if err := os.WriteFile(other, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(other, path); err != nil {
				t.Fatal(err)
			}
		},
		"its log is removed":    func(t *testing.T, path string) { remove(t, path+"-wal") },
		"its locks are removed": func(t *testing.T, path string) { remove(t, path+"-shm") },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "semel.db")
			s, err := Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			held := claim(t, s, "held")
			a, err := NewAtomic(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			harm(t, path)
			_, claimed := s.Claim(t.Context(), proposal("new"))
			_, swapped := s.Swap(t.Context(), held.Seen(), proposal("held"))
			_, read := s.Get(t.Context(), held.Key)
			_, renewed := s.Renew(t.Context(), []store.Lease{held.Lease()}, time.Hour)
			_, ran := a.Run(t.Context(), semel.Call{Operation: "pay", Tenant: "ann", Key: "k", Payload: semel.NoPayload()}, nil)
			for method, err := range map[string]error{
				"Claim": claimed, "Swap": swapped, "Get": read, "Renew": renewed, "Atomic.Run": ran,
				"Settle": s.Settle(t.Context(), held.Lease(), store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour}),
				"Check":  s.Check(t.Context()),
			} {
				if !errors.Is(err, ErrUnsafe) {
					t.Errorf("%s: %v, want ErrUnsafe", method, err)
				}
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func TestIsMountPoint_FileInList_IsFound(t *testing.T) {
	list := filepath.Join(t.TempDir(), "mountinfo")
	const mounts = `22 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw
31 28 8:1 /srv/data/semel.db /app/with\040space/semel.db rw,relatime shared:1 - ext4 /dev/sda1 rw
`
	if err := os.WriteFile(list, []byte(mounts), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/app/with space/semel.db": true, "/app/with space": false, "/srv/data/semel.db": false, "/proc": true,
	} {
		if got := isMountPoint(list, path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if isMountPoint(list+"-absent", "/proc") {
		t.Error("a system without the list has mounts")
	}
	if runtime.GOOS == "linux" && !isMountPoint("/proc/self/mountinfo", "/proc") {
		t.Error("/proc is not found in the kernel's list")
	}
}

// A clock that was set back does not stop the checks of reads until it has come as far again.
func TestGet_ClockSetBack_FileIsChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	s := openAt(t, path, nil)
	claim(t, s, "k")
	s.identity.readChecked.Store(time.Now().Add(time.Hour).UnixNano())
	if err := os.Rename(path, path+".away"); err != nil {
		t.Skip(err)
	}
	if _, err := s.Get(t.Context(), proposal("k").Key); !errors.Is(err, ErrUnsafe) {
		t.Errorf("Get: %v, want ErrUnsafe", err)
	}
}
