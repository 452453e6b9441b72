package architecture

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// apiLimits are the most exported names and methods that a package may have.
// Each entry is the present number; the aim is in its comment. A change that makes
// a package smaller lowers its entry.
var apiLimits = map[string]struct{ names, methods int }{
	".":             {60, 35},
	"consume":       {60, 8},
	"store/pgstore": {25, 25},
}

// A name is an exported identifier of package level: a function, a type, a
// constant or a variable. A method is an exported method of an exported type,
// without the methods of interfaces.
func TestPackage_ExportedNamesAndMethods_WithinLimit(t *testing.T) {
	names, methods := map[string]int{}, map[string]int{}
	for _, f := range goFiles(t) {
		if f.IsTest() {
			continue
		}
		n, m := exported(f.ast)
		names[f.Dir()] += n
		methods[f.Dir()] += m
	}
	for dir, limit := range apiLimits {
		if names[dir] == 0 {
			t.Errorf("%s: no such package; correct the table of this test", dir)
		}
		if names[dir] > limit.names {
			t.Errorf("%s: has %d exported names, at most %d", dir, names[dir], limit.names)
		}
		if methods[dir] > limit.methods {
			t.Errorf("%s: has %d exported methods, at most %d", dir, methods[dir], limit.methods)
		}
	}
}

// exported counts the exported names and methods that a file declares.
func exported(f *ast.File) (names, methods int) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case !d.Name.IsExported():
			case d.Recv == nil:
				names++
			case exportedReceiver(d):
				methods++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						names++
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.IsExported() {
							names++
						}
					}
				}
			}
		}
	}
	return names, methods
}

// mostFiles is how many files that are not tests a package may have. Packages
// made for tests may have more.
const mostFiles = 20

func TestPackage_Files_WithinLimit(t *testing.T) {
	count := map[string]int{}
	for _, f := range goFiles(t) {
		if !f.IsTest() && !forTests(f.Dir()) {
			count[f.Dir()]++
		}
	}
	for dir, n := range count {
		if n > mostFiles {
			t.Errorf("%s: has %d files that are not tests, at most %d", dir, n, mostFiles)
		}
	}
}

// forTests reports whether a package is made for tests.
func forTests(dir string) bool { return strings.HasSuffix(dir, "test") || fits("test/...", dir) }

// docLines is how many lines the doc comment of an exported name may have. A
// longer text belongs in a guide.
const docLines = 15

func TestDocComments_OfExportedNames_WithinLimit(t *testing.T) {
	for _, f := range goFiles(t) {
		if !public(&f) {
			continue
		}
		for name, n := range docs(f.ast) {
			if n > docLines {
				t.Errorf("%s: the doc comment of %s has %d lines, at most %d are allowed: move the rest to the package's doc or to a guide", f.Dir(), name, n, docLines)
			}
		}
	}
}

// docs maps each exported name of a file to the number of lines of its doc
// comment. A group of constants or variables has its first name.
func docs(f *ast.File) map[string]int {
	lines := map[string]int{}
	add := func(name string, c *ast.CommentGroup) {
		if token.IsExported(name) && c != nil {
			lines[name] = max(lines[name], strings.Count(c.Text(), "\n"))
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if exportedReceiver(d) {
				add(d.Name.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name.Name, d.Doc)
					add(s.Name.Name, s.Doc)
				case *ast.ValueSpec:
					add(s.Names[0].Name, d.Doc)
					add(s.Names[0].Name, s.Doc)
				}
			}
		}
	}
	return lines
}

func TestCounts_OfASample(t *testing.T) {
	f := parse(t, `package p

// A is one.
//
// Three lines.
const A, b = 1, 2

// C is a type.
type C struct{ D int }

type e struct{}

// F is a method.
func (*C) F() {}
func (C) g()  {}
func (e) H()  {}
func I[T any]() {}
type J interface { K() }
var ErrL, M error
`)
	if names, methods := exported(f); names != 6 || methods != 1 { // A C I J ErrL M, and F
		t.Errorf("%d names and %d methods, want 6 and 1", names, methods)
	}
	if n := docs(f); n["A"] != 3 || n["C"] != 1 || n["F"] != 1 || len(n) != 3 {
		t.Errorf("lines of doc comments: %v, want A 3, C 1, F 1", n)
	}
}
