package architecture

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// public reports whether a file belongs to a package that others import.
func public(f *goFile) bool {
	return !f.IsTest() && f.ast.Name.Name != "main" && !strings.Contains("/"+f.Dir()+"/", "/internal/") && !fits("cmd/...", f.Dir()) && !fits("test/...", f.Dir())
}

func TestExportedNames_HaveDocComments(t *testing.T) {
	for _, f := range goFiles(t) {
		if !public(&f) {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil {
					t.Errorf("%s: %s has no doc comment", f.at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				undocumented(t, &f, d)
			}
		}
	}
}

// undocumented looks at types, constants and variables. Constants and
// variables may share the comment of their group, or have one on their line.
func undocumented(t *testing.T, f *goFile, d *ast.GenDecl) {
	t.Helper()
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || len(d.Specs) > 1) {
				t.Errorf("%s: type %s has no doc comment", f.at(s), s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if n.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
					t.Errorf("%s: %s %s has no doc comment", f.at(n), d.Tok, n.Name)
				}
			}
		}
	}
}

// exportedReceiver is false for methods of types that are not exported.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return token.IsExported(t.Name)
		default:
			return true
		}
	}
}

func TestPublicPackages_HavePackageComments(t *testing.T) {
	first, documented := map[string]string{}, map[string]bool{}
	for _, f := range goFiles(t) {
		if !public(&f) {
			continue
		}
		if first[f.Dir()] == "" {
			first[f.Dir()] = f.Name
		}
		documented[f.Dir()] = documented[f.Dir()] || f.ast.Doc != nil
	}
	for dir, file := range first {
		if !documented[dir] {
			t.Errorf("%s:1: package %s has no package comment", file, dir)
		}
	}
}
