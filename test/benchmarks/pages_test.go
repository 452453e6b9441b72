package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

// The pages in docs are those that the program makes from the figures in docs, so that
// nobody types a figure.
func TestPages_InDocs_AreMadeFromTheFigures(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	r, err := readReport(filepath.Join(root, "docs", "benchmarks"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := render(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if b, err := os.ReadFile(filepath.Join(root, "docs", name)); err != nil || string(b) != files[name] {
			t.Errorf("docs/%s is not what the program makes; run: cd test && go run ./benchmarks -out ../docs -only none (%v)", name, err)
		}
	}
	pictures, err := filepath.Glob(filepath.Join(root, "docs", "images", "benchmarks", "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range pictures {
		if files["images/benchmarks/"+filepath.Base(file)] == "" {
			t.Errorf("%s: no page has this chart; delete it", filepath.Base(file))
		}
	}
}
