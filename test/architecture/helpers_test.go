package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

// goFile is a Go file, parsed.
type goFile struct {
	repo.File
	set *token.FileSet
	ast *ast.File
}

// at names the place of a node.
func (f *goFile) at(n ast.Node) string { return f.set.Position(n.Pos()).String() }

// imports reports whether the file imports a package.
func (f *goFile) imports(path string) bool {
	for _, s := range f.ast.Imports {
		if s.Path.Value == `"`+path+`"` {
			return true
		}
	}
	return false
}

// goFiles parses every Go file of the repository.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	files, err := repo.Files(".go")
	if err != nil {
		t.Fatal(err)
	}
	var gos []goFile
	for _, f := range files {
		set := token.NewFileSet()
		a, err := parser.ParseFile(set, f.Name, f.Text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		gos = append(gos, goFile{f, set, a})
	}
	return gos
}
