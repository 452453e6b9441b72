package verify

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Verdict is the result of a check in one word.
type Verdict string

// The verdicts.
const (
	OK         Verdict = "ok"
	Broken     Verdict = "broken"
	Incomplete Verdict = "incomplete" // it could not be tried, or not to the end
	Skipped    Verdict = "skipped"    // the store cannot do it, and need not
)

// Result is the result of one check.
type Result struct {
	Name       string   `json:"name"`
	Claim      string   `json:"claim"`
	Verdict    Verdict  `json:"verdict"`
	Trials     int64    `json:"trials"`
	Failures   int64    `json:"failures"`   // trials that broke the claim
	Violations []string `json:"violations"` // the first of them, in words
	Warnings   []string `json:"warnings"`
	Info       []string `json:"info"`
	Seconds    float64  `json:"seconds"`
}

// Report is the report of semel verify, and its JSON.
type Report struct {
	Store       string   `json:"store"`
	Run         string   `json:"run"` // the tenant of its records
	Seed        uint64   `json:"seed"`
	OK          bool     `json:"ok"`
	Connections int      `json:"connections"`
	Processes   int      `json:"processes"` // besides this one
	Checks      []Result `json:"checks"`
	Trials      int64    `json:"trials"`
	Failures    int64    `json:"failures"`
	Warnings    int      `json:"warnings"`
	Resent      int64    `json:"resent"` // calls that were repeated because no answer came
	Seconds     float64  `json:"seconds"`
	Latency     *Latency `json:"latency,omitempty"`
}

// BrokenError reports a store that broke a guarantee, or that could not be tested.
type BrokenError struct{ Broken, Incomplete []string }

// Error names the checks.
func (e *BrokenError) Error() string {
	var parts []string
	if len(e.Broken) > 0 {
		parts = append(parts, "the store broke a promise: "+strings.Join(e.Broken, ", "))
	}
	if len(e.Incomplete) > 0 {
		parts = append(parts, "could not be tried to the end: "+strings.Join(e.Incomplete, ", "))
	}
	return strings.Join(parts, "; ")
}

// judge sums the results up.
func (r *Report) judge() error {
	e := &BrokenError{}
	for _, c := range r.Checks {
		r.Trials += c.Trials
		r.Failures += c.Failures
		r.Warnings += len(c.Warnings)
		switch c.Verdict {
		case Broken:
			e.Broken = append(e.Broken, fmt.Sprintf("%s (%d of %d)", c.Name, c.Failures, c.Trials))
		case Incomplete:
			e.Incomplete = append(e.Incomplete, c.Name)
		case OK, Skipped:
		}
	}
	r.OK = len(e.Broken)+len(e.Incomplete) == 0
	if r.OK {
		return nil
	}
	return e
}

// Result returns the result of a check, if it ran.
func (r *Report) Result(name string) (Result, bool) {
	i := slices.IndexFunc(r.Checks, func(c Result) bool { return c.Name == name })
	if i < 0 {
		return Result{}, false
	}
	return r.Checks[i], true
}

// Progress tells on a terminal, in one line that changes, which check is
// running. It is nil for anything else: there the report says it all.
func Progress(w io.Writer) func(name string) {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return progress(w)
}

func progress(w io.Writer) func(name string) {
	return func(name string) {
		text := name + "…"
		if name == "" {
			text = ""
		}
		_, _ = fmt.Fprint(w, "\r\x1b[K", text) // a terminal that has gone stops nothing
	}
}
