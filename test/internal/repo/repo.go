// Package repo reads the files of this repository, for tests that check their
// text.
package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Root is the directory of the root module, found upward from the working
// directory of the test.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(b, []byte("module "+Module+"\n")) {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("repo: no go.mod of " + Module + " above the working directory")
		}
		dir = up
	}
}

// Module is the path of the root module.
const Module = "github.com/semel-go/semel"

// File is one file of the repository.
type File struct {
	Name string // from the root, with slashes
	Text string
}

// Dir is the file's directory, from the root; "." for the root itself.
func (f *File) Dir() string { return path.Dir(f.Name) }

// IsTest reports whether it is a Go test file.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Name, "_test.go") }

// Line is the number of the line, from 1, in which the byte at offset is.
func (f *File) Line(offset int) int { return 1 + strings.Count(f.Text[:offset], "\n") }

// At is the file and line of an offset, for messages.
func (f *File) At(offset int) string { return fmt.Sprintf("%s:%d", f.Name, f.Line(offset)) }

// Files reads the text files of the repository whose names end with one of the
// suffixes. It reads the files that git tracks or does not ignore; without git, all
// files outside directories whose names begin with a dot. It omits files that
// contain a zero byte.
func Files(suffixes ...string) ([]File, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	names, err := tracked(root)
	if err != nil {
		if names, err = walk(root); err != nil {
			return nil, err
		}
	}
	var files []File
	for _, name := range names {
		if !slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) }) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted, but git still lists it
			continue
		case err != nil:
			return nil, err
		case !bytes.Contains(b, []byte{0}):
			files = append(files, File{name, string(b)})
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("repo: no file of %s ends with any of %q", root, suffixes)
	}
	return files, nil
}

func tracked(root string) ([]string, error) {
	cmd := exec.CommandContext(context.Background(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	return slices.Compact(slices.Sorted(strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00"))), nil
}

func walk(root string) (names []string, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.Type().IsRegular():
			rel, err := filepath.Rel(root, name)
			names = append(names, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	return names, err
}
