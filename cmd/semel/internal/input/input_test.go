package input_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

func TestError_NamesFieldValueAndRemedy(t *testing.T) {
	err := &input.Error{Field: "--lease", Value: "abc", Want: "give a duration, such as 30s"}
	if got, want := err.Error(), `--lease: "abc": give a duration, such as 30s`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	missing := &input.Error{Field: "--scope", Want: "is required"}
	if got, want := missing.Error(), "--scope: is required"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestError_LongValue_CutToOneLine(t *testing.T) {
	err := &input.Error{Field: "--scope", Value: strings.Repeat("x", 500) + "\n", Want: "no"}
	if got := err.Error(); len(got) > 120 || strings.Contains(got, "\n") {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
}

func TestIs_WrappedError_Found(t *testing.T) {
	e := &input.Error{Field: "f", Want: "w"}
	if !input.Is(fmt.Errorf("proxy: %w", errors.Join(e))) {
		t.Error("a wrapped and joined mistake is not found")
	}
	if input.Is(errors.New("disk full")) || input.Is(nil) {
		t.Error("what is no mistake of the user's is taken for one")
	}
}

func TestLines_JoinedErrors_OneLineEach(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	both := fmt.Errorf("both: %w, %w", a, b) // says more than its parts
	got := input.Lines(errors.Join(a, errors.Join(b, both), errors.New("two\nlines")))
	if want := []string{"a", "b", "both: a, b", "two; lines"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := input.Lines(nil); got != nil {
		t.Errorf("nil has the lines %q", got)
	}
}

func TestCount_One_HasNoPlural(t *testing.T) {
	if got := input.Count(0, "row") + ", " + input.Count(int64(1), "row") + ", " + input.Count(uint64(2), "row"); got != "0 rows, 1 row, 2 rows" {
		t.Error(got)
	}
}

func TestUnreadable_MissingOrForbidden_NamesCommand(t *testing.T) {
	_, missing := os.Open("/none/file")
	forbidden := fmt.Errorf("certificate: %w", &fs.PathError{Op: "open", Path: "/etc/file", Err: fs.ErrPermission})
	for want, got := range map[string]string{
		"there is no such file; see what is there with: ls -l /none":                          input.Unreadable(missing, ""),
		"there is no such file; make it with: touch /none/file":                               input.Unreadable(missing, "make it with: touch /none/file"),
		"must not be read by this user; see who may read it with: ls -l /etc/file":            input.Unreadable(forbidden, "touch /etc/file"),
		"cannot be read: is a directory":                                                      input.Unreadable(&fs.PathError{Op: "read", Path: "/", Err: syscall.EISDIR}, "x"),
		"cannot be read: no":                                                                  input.Unreadable(errors.New("no"), "x"),
		"/etc/file: must not be read by this user; see who may read it with: ls -l /etc/file": input.UnreadableFile(forbidden).Error(),
		"no pair": input.UnreadableFile(errors.New("no pair")).Error(),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
