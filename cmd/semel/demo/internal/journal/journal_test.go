package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type entry struct {
	N    int    `json:"n"`
	Text string `json:"text,omitempty"`
}

func file(t *testing.T) string { return filepath.Join(t.TempDir(), "journal") }

func open(t *testing.T, path string, seen *[]entry) *Journal[entry] {
	t.Helper()
	j, err := Open(path, func(e *entry) { *seen = append(*seen, *e) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func add(t *testing.T, j *Journal[entry], es ...entry) {
	t.Helper()
	for i := range es {
		if err := j.Append(&es[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// follow is a tail with the entries that it has read.
func follow(path string) (*Tail[entry], *[]entry) {
	var seen []entry
	return NewTail(path, func(e *entry) { seen = append(seen, *e) }), &seen
}

func TestOpen_WrittenLines_AreRead(t *testing.T) {
	p, written := file(t), []entry{{1, "a\n\"ö\x00"}, {2, ""}, {3, "<&>"}}
	var seen []entry
	add(t, open(t, p, &seen), written...)
	if open(t, p, &seen); !slices.Equal(seen, written) {
		t.Errorf("got %+v", seen)
	}
}

func TestOpen_LastLineCut_IsRemoved(t *testing.T) {
	p := file(t)
	var seen []entry
	add(t, open(t, p, &seen), entry{1, ""})
	cutOff(t, p, `{"n":2`)
	add(t, open(t, p, &seen), entry{3, ""})
	if b, err := os.ReadFile(p); err != nil || string(b) != "{\"n\":1}\n{\"n\":3}\n" {
		t.Errorf("%s, %v", b, err)
	}
}

func cutOff(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_LineNotReadable_IsAnError(t *testing.T) {
	p := file(t)
	cutOff(t, p, "nonsense\n")
	if _, err := Open(p, func(*entry) {}); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("open: %v", err)
	}
	tail, _ := follow(p)
	if err := tail.Update(); err == nil {
		t.Error("nonsense was read without an error")
	}
}

func TestWrite_AfterFailure_WritesNothing(t *testing.T) {
	p := file(t)
	var seen []entry
	j := open(t, p, &seen)
	j.Close()
	first := j.Append(&entry{1, ""})
	if second := j.Append(&entry{2, ""}); first == nil || second != first {
		t.Errorf("got %v, then %v", first, second)
	}
}

func TestTail_Lines_SeenOnce(t *testing.T) {
	p := file(t)
	tail, seen := follow(p)
	if err := tail.Update(); err != nil || len(*seen) != 0 {
		t.Fatalf("a file that is not there yet: %v, %v", *seen, err)
	}
	var none []entry
	j := open(t, p, &none)
	for n := 1; n <= 3; n++ {
		add(t, j, entry{n, ""})
		for range 2 { // reading again changes nothing
			if err := tail.Update(); err != nil || len(*seen) != n {
				t.Fatalf("after %d: %v, %v", n, *seen, err)
			}
		}
	}
}

func TestTail_LineUnfinished_Waits(t *testing.T) {
	p := file(t)
	tail, seen := follow(p)
	for i, part := range []string{`{"n"`, `:1}`, "\n"} {
		cutOff(t, p, part)
		if err := tail.Update(); err != nil || len(*seen) != i/2 {
			t.Errorf("after part %d: %v, %v", i, *seen, err)
		}
	}
}

func TestTail_FileLargerThanBuffer_IsRead(t *testing.T) {
	p, n := file(t), 2000
	long := bytes.Repeat([]byte(`{"n":1,"text":"`+strings.Repeat("x", 100)+"\"}\n"), n)
	if err := os.WriteFile(p, long, 0o600); err != nil || len(long) < 128<<10 {
		t.Fatal(len(long), err)
	}
	tail, seen := follow(p)
	if err := tail.Update(); err != nil || len(*seen) != n {
		t.Errorf("%d lines, %v", len(*seen), err)
	}
}
