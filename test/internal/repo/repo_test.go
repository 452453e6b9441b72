package repo

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestFiles_FindsThisFile(t *testing.T) {
	files, err := Files(".go")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(files, func(f File) bool { return f.Name == "test/internal/repo/repo_test.go" })
	if i < 0 {
		t.Fatal("Files does not list the file of this test")
	}
	if f := files[i]; f.Dir() != "test/internal/repo" || !f.IsTest() || f.At(len("package repo\n")) != f.Name+":2" {
		t.Errorf("dir %q, test %v, second line %q", f.Dir(), f.IsTest(), f.At(len("package repo\n")))
	}
	if _, err := Files(".no-such-suffix"); err == nil {
		t.Error("a suffix that no file has is no error, so a check of no file would pass")
	}
}

func TestFiles_WithoutGit_WalksTheTree(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.go", "b/c.go", ".hidden/d.go"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names, err := walk(dir)
	if err != nil || !slices.Equal(names, []string{"a.go", "b/c.go"}) {
		t.Errorf("walked %q, %v", names, err)
	}
}
