package input_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
