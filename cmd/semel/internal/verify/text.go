package verify

import (
	"fmt"
	"io"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %d more processes\n\n", r.Store, input.Count(r.Connections, "connection"), r.Processes)
	for i := range r.Checks {
		r.Checks[i].write(&b)
	}
	if l := r.Latency; l != nil {
		b.WriteString("\n  one caller, in ms        p50      p99      max\n")
		for _, row := range []struct {
			name string
			q    Quantiles
		}{{"claim", l.Claim}, {"settle", l.Settle}, {"duplicate", l.Duplicate}} {
			fmt.Fprintf(&b, "    %-16s %8.2f %8.2f %8.2f\n", row.name, row.q.P50, row.q.P99, row.q.Max)
		}
	}
	fmt.Fprintf(&b, "\n  %d trials, %d broke a promise, %s, %.1f s", r.Trials, r.Failures, input.Count(r.Warnings, "warning"), r.Seconds)
	if r.Resent > 0 {
		fmt.Fprintf(&b, "; %s sent again because no answer came", input.Count(int(r.Resent), "call"))
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// write writes one line for the check, and one for each finding.
func (c *Result) write(b *strings.Builder) {
	word := string(c.Verdict)
	if c.Verdict == Broken || c.Verdict == Incomplete {
		word = strings.ToUpper(word)
	}
	fmt.Fprintf(b, "  %-11s%-13s%8d trials %6.2f s\n", word, c.Name, c.Trials, c.Seconds)
	if c.Verdict == Broken {
		fmt.Fprintf(b, "      promised: %s\n", c.Claim)
	}
	for _, lines := range []struct {
		word string
		of   []string
	}{{"broken: ", c.Violations}, {"warning: ", c.Warnings}, {"", c.Info}} {
		for _, line := range lines.of {
			fmt.Fprintf(b, "      %s%s\n", lines.word, line)
		}
	}
}
