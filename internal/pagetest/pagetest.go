// Package pagetest compares pages of docs/ that are made from the code with the code, for
// the tests that make them. "make docs" writes the pages.
package pagetest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Write is the environment variable that makes Check write the page.
const Write = "SEMEL_WRITE_DOCS"

// Check fails unless the file, such as "docs/reference/proxy.md", has the text. It finds
// the file from the root of the repository. With SEMEL_WRITE_DOCS=1 it writes the file
// instead.
func Check(t testing.TB, file, text string) {
	t.Helper()
	path, err := find(file)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(Write) == "1" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // a page is for all to read
			t.Fatal(err)
		}
		return
	}
	page, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if n, line := difference(string(page), text); n > 0 {
		t.Errorf("%s:%d: the page is not what the code says; write it with: make docs\nthe code says: %s", file, n, line)
	}
}

// find returns the path of a file, from the root of the repository.
func find(file string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return filepath.Join(dir, filepath.FromSlash(file)), nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("pagetest: there is no go.work above the working directory, so %s is not found", file)
		}
		dir = up
	}
}

// difference is the number of the first line in which the texts differ, from 1, and this
// line of want. Zero: they are the same.
func difference(got, want string) (n int, line string) {
	if got == want {
		return 0, ""
	}
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i, line := range b {
		if i >= len(a) || a[i] != line {
			return i + 1, line
		}
	}
	return len(b) + 1, "(the end)"
}

// Cell is a text as a cell of a Markdown table: in one line, with its bars escaped.
func Cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
