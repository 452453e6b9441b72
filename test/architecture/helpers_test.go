package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"sync"
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

// parsed are the Go files of the repository, parsed once.
var parsed = sync.OnceValues(func() ([]goFile, error) {
	files, err := repo.Files(".go")
	if err != nil {
		return nil, err
	}
	var gos []goFile
	for _, f := range files {
		set := token.NewFileSet()
		a, err := parser.ParseFile(set, f.Name, f.Text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		gos = append(gos, goFile{f, set, a})
	}
	return gos, nil
})

// goFiles are the Go files of the repository.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	gos, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return gos
}

// parse parses the text of a Go file.
func parse(t *testing.T, text string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "sample.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
