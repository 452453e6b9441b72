package architecture

import (
	"go/ast"
	"strings"
	"testing"
)

// A test that -short makes smaller, or skips, has Campaign in its name, because
// "make campaigns" finds it by that. In kafkatest -short leaves out Apache Kafka, on
// which "make test-kafka" runs all tests of the package.
func TestCampaigns_TestsThatAskForShort_AreNamedSo(t *testing.T) {
	calls := map[string]map[string]map[string]bool{} // by directory and function: the names that it uses
	for _, f := range goFiles(t) {
		if !f.IsTest() || strings.HasSuffix(f.Dir(), "/kafkatest") {
			continue
		}
		if calls[f.Dir()] == nil {
			calls[f.Dir()] = map[string]map[string]bool{}
		}
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil {
				calls[f.Dir()][d.Name.Name] = namesIn(d)
			}
		}
	}
	campaigns := 0
	for dir, functions := range calls {
		for name := range functions {
			asks := reaches(functions, name, map[string]bool{})
			campaign := strings.HasPrefix(name, "TestCampaign_")
			if campaign {
				campaigns++
			}
			if asks && strings.HasPrefix(name, "Test") && !campaign {
				t.Errorf("%s: %s asks for testing.Short; name it TestCampaign_…, so that make campaigns runs its normal form", dir, name)
			}
			if campaign && !asks {
				t.Errorf("%s: %s does not ask for testing.Short; make test runs it whole, so make campaigns need not", dir, name)
			}
		}
	}
	if campaigns == 0 {
		t.Error("no campaign was found")
	}
}

// namesIn are the identifiers that a function uses, and "testing.Short" if it asks
// for that, itself or by consumetest.LoadSize.
func namesIn(d *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && (x.Name == "testing" && n.Sel.Name == "Short" || x.Name == "consumetest" && n.Sel.Name == "LoadSize") {
				names["testing.Short"] = true
			}
			ast.Inspect(n.X, func(n ast.Node) bool { // without the selected name, which may be a method's
				if x, ok := n.(*ast.Ident); ok {
					names[x.Name] = true
				}
				return true
			})
			return false
		case *ast.Ident:
			names[n.Name] = true
		}
		return true
	})
	return names
}

// reaches reports whether a function asks for testing.Short, itself or through
// functions that it uses.
func reaches(functions map[string]map[string]bool, name string, seen map[string]bool) bool {
	if seen[name] {
		return false
	}
	seen[name] = true
	for used := range functions[name] {
		if used == "testing.Short" || functions[used] != nil && reaches(functions, used, seen) {
			return true
		}
	}
	return false
}

func TestReaches_ThroughHelpers_AndNotThroughMethods(t *testing.T) {
	f := parse(t, `package p
import "testing"
func size() int { if testing.Short() { return 1 }; return 2 }
func run(t *testing.T) { _ = size() }
func TestA(t *testing.T) { run(t) }
func TestB(t *testing.T) { var c channel; c.size() }
func TestC(t *testing.T) { t.Run("", func(t *testing.T) { testing.Short() }) }
`)
	functions := map[string]map[string]bool{}
	for _, d := range f.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			functions[d.Name.Name] = namesIn(d)
		}
	}
	for name, want := range map[string]bool{"TestA": true, "TestB": false, "TestC": true} {
		if reaches(functions, name, map[string]bool{}) != want {
			t.Errorf("%s: not %v", name, want)
		}
	}
}
