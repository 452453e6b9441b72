package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/internal/acts"
)

func TestDo_ManyAtOnce_EachLineIsWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trail")
	const commands, acts = 4, 25
	var all sync.WaitGroup
	for c := range commands {
		all.Go(func() {
			trail, err := Open(path) // as another process does
			if err != nil {
				t.Error(err)
				return
			}
			defer trail.Close()
			for n := range acts {
				if _, err := trail.Do(Act{Act: "resolve", Reason: strings.Repeat("long ", 2000), Position: int64(c*acts + n + 1)}, func() error { return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	events := map[string]int{}
	for line := range strings.Lines(string(text)) {
		var e entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("a line of %d bytes: %v", len(line), err)
		}
		events[fmt.Sprint(e.ID, e.Position, e.Event)]++
	}
	if len(events) != 2*commands*acts {
		t.Errorf("%d different lines, want %d", len(events), 2*commands*acts)
	}
}

// A full disk can take a part of a line, of this process or of another one.
func TestDo_FileEndsWithPartOfLine_NextLinesAreWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trail")
	act := func(trail *Trail) {
		if _, err := trail.Do(Act{Act: "erase"}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	long, err := Open(path) // as the console
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	act(long)
	for range 2 {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(`{"time":"2026-11-30T04:01:37Z","id":"ce938`); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		act(long)
		short, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		act(short)
		if err := short.Close(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for line := range strings.Lines(string(text)) {
		if json.Valid([]byte(line)) {
			whole++
		}
	}
	if whole != 10 {
		t.Errorf("%d whole lines, want the 10 of five acts:\n%s", whole, text)
	}
}

// The act has happened, so the error must not say otherwise.
func TestBegin_ResultCannotBeWritten_ErrorSaysWhatHappened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trail")
	trail, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer trail.Close()
	end, err := trail.Begin(Act{Act: "resolve"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := end(nil); !errors.Is(err, ErrNotWritten) || errors.Is(err, acts.ErrNothingChanged) || !strings.Contains(err.Error(), `"done"`) {
		t.Errorf("error %v, want one that says that the act is done", err)
	}
	if _, err := trail.Begin(Act{Act: "resolve"}); !errors.Is(err, ErrNotWritten) || !errors.Is(err, acts.ErrNothingChanged) {
		t.Errorf("the next act: error %v, want one that says that nothing was done", err)
	}
}

func TestOpen_NoPath_WritesNothing(t *testing.T) {
	t.Parallel()
	trail, err := Open("")
	if err != nil || trail != nil {
		t.Fatal(trail, err)
	}
	did := errors.New("did it")
	if _, err := trail.Do(Act{}, func() error { return did }); !errors.Is(err, did) || trail.Close() != nil {
		t.Errorf("error %v, want the act's", err)
	}
}

// The console opens the file once, and a rotation may come at any time, also during an act.
func TestBegin_FileIsRotatedOrRemoved_WritesToTheNewOne(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename a file that is open")
	}
	for name, replace := range map[string]func(path string) error{
		"renamed": func(path string) error { return os.Rename(path, path+".1") },
		"removed": os.Remove,
		"renamed, a new one": func(path string) error {
			return errors.Join(os.Rename(path, path+".1"), os.WriteFile(path, nil, 0o600))
		},
	} {
		path := filepath.Join(t.TempDir(), "trail")
		trail, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer trail.Close()
		act := func(do func() error) {
			if _, err := trail.Do(Act{Act: "resolve"}, do); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		lines := func() int {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return strings.Count(string(text), "\n")
		}
		act(func() error { return nil })
		if err := replace(path); err != nil {
			t.Fatal(err)
		}
		act(func() error { return nil })
		if n := lines(); n != 2 {
			t.Errorf("%s: %d lines, want 2", name, n)
		}
		act(func() error { return replace(path) })
		if n := lines(); n != 1 {
			t.Errorf("%s: %d lines after a rotation during the act, want the result", name, n)
		}
	}
}

// If the new file cannot be made, the act must not happen.
func TestBegin_DirectoryIsGone_Refused(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not remove a file that is open")
	}
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	trail, err := Open(filepath.Join(dir, "trail"))
	if err != nil {
		t.Fatal(err)
	}
	defer trail.Close()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, err = trail.Do(Act{Act: "resolve"}, func() error { t.Error("the act happened"); return nil })
	if !errors.Is(err, ErrNotWritten) {
		t.Errorf("%v, want ErrNotWritten", err)
	}
}

// As on NFS, after another host has replaced the file: it cannot be asked about any more.
func TestDo_OpenFileIsGone_PathIsOpenedAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "trail")
	trail, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer trail.Close()
	if err := trail.file.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if result, err := trail.Do(Act{Act: "resolve"}, func() error { return nil }); err != nil || result != acts.Done {
			t.Errorf("%s, %v", result, err)
		}
	}
	text, err := os.ReadFile(path)
	if n := strings.Count(string(text), "\n"); err != nil || n != 4 {
		t.Errorf("%d lines, %v: %s", n, err, text)
	}
}
