package architecture

import (
	"go/ast"
	"strings"
	"testing"
)

// suites are tests without a condition and a result in their names: their subtests have
// them, or the test measures.
var suites = map[string]bool{
	"TestMain": true, "TestConformance": true, "TestStorm": true, "TestSoak": true, "TestMuseum": true,
	"TestRelease": true, "TestLoad": true, "TestCompareClients": true,
}

func TestNamesOfTests_SayConditionAndResult(t *testing.T) {
	for _, f := range goFiles(t) {
		if !f.IsTest() {
			continue
		}
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && strings.HasPrefix(d.Name.Name, "Test") &&
				!strings.Contains(d.Name.Name, "_") && !suites[d.Name.Name] {
				t.Errorf("%s: name %s by condition and result, as in TestClaim_LeaseExpired_IsTakenOver", f.at(d), d.Name.Name)
			}
		}
	}
}
