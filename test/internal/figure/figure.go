// Package figure reports the numbers of a test for docs/evidence.md: it writes a
// line to the test's log, which the evidence command collects.
package figure

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// Prefix begins a line of a test's log that holds a Figure as JSON. Tests of
// other modules, which cannot import this package, print it themselves.
const Prefix = "evidence: "

// Figure is one claim and how often it was tried.
type Figure struct {
	Claim    string `json:"claim"`            // the property that had to hold, or that a control had to violate, in one phrase
	Where    string `json:"where,omitempty"`  // the store or the setting; empty: there is only one
	Trials   int64  `json:"trials"`           // number of trials
	Failures int64  `json:"failures"`         // trials in which the property did not hold
	Control  bool   `json:"control"`          // a negative control, which must have Failures
	Detail   string `json:"detail,omitempty"` // other counts
	Seeds    string `json:"seeds,omitempty"`  // such as "1-200000"
}

// Report writes the figure into the log of the test. It does not judge it.
func Report(t testing.TB, f Figure) {
	t.Helper()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s%s", Prefix, b)
}

// Long reports whether the long form was asked for (SEMEL_EVIDENCE=1): tests
// then reach the numbers of docs/evidence.md, and else those that a run of all
// tests has time for.
func Long() bool { return os.Getenv("SEMEL_EVIDENCE") == "1" }

// Bound is what n trials without a failure say of the rate of failures, with
// 95 % confidence: the rule of three.
func (f *Figure) Bound() string {
	switch {
	case f.Control, f.Trials == 0:
		return ""
	case f.Failures > 0:
		return fmt.Sprintf("%.2g", float64(f.Failures)/float64(f.Trials))
	}
	return fmt.Sprintf("< %.2g", 3/float64(f.Trials))
}
