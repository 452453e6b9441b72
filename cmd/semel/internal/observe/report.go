package observe

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// Report says what the proxy would have done since it started.
type Report struct {
	Since    time.Time     `json:"since"`
	Seconds  float64       `json:"seconds"`
	Requests uint64        `json:"requests"`
	Rules    []*RuleReport `json:"rules"`
	// Keys are remembered, and ForgottenKeys no longer: a later duplicate of one counts
	// as a first call.
	Keys          int    `json:"keys"`
	ForgottenKeys uint64 `json:"forgotten_keys"`
}

// RuleReport is the part of a Report for one rule.
type RuleReport struct {
	Operation string            `json:"operation"`
	Rule      string            `json:"rule"`
	Requests  uint64            `json:"requests"`
	Results   map[Result]uint64 `json:"results"`
	Doubt     map[Doubt]uint64  `json:"doubt"`
	// Callers are where the requests came from whose clients have something to change,
	// the most frequent first.
	Callers map[Result][]CallerCount `json:"callers,omitempty"`
	// DoubtCallers are where the requests came from whose answers leave doubt.
	DoubtCallers map[Doubt][]CallerCount `json:"doubt_callers,omitempty"`
	// NextSteps say what to do, by the names in Results and Doubt.
	NextSteps map[string]string `json:"next_steps"`
}

// resultLines are the results in the order of the table, in words.
var resultLines = []struct {
	result Result
	text   string
}{
	{First, "first calls of their keys: sent to the service"},
	{Again, "repeats for which no answer is kept: sent to the service again"},
	{AfterFirst, "duplicates after the first call had ended: answered from the record"},
	{DuringFirst, "duplicates while the first call ran: answered 409, or with --wait from the record"},
	{InDoubt, "duplicates of a request in doubt, under on-doubt park: answered 409 until somebody decides"},
	{Mismatch, "the same key with another request: answered 422"},
	{KeyMissing, "no key, although one is required: answered 400"},
	{KeyMalformed, "a malformed key: answered 400"},
	{Refused("tenant_missing"), "nobody knows whose request it is (tenant_missing): answered 401"},
	{Unkeyed, "no key: sent to the service, unprotected"},
	{Passed, "of no protected method: sent to the service"},
	{Unobserved, "ended before they could be compared"},
}

var doubtLines = []struct {
	doubt Doubt
	text  string
}{
	{ServerError, "the service answered 5xx"},
	{Silence, "no answer came, or it broke off"},
	{ClientLeft, "the client left before its answer"},
}

// WriteText writes the report as a table for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "What semel proxy would have done with %s in %v\n", input.Count(r.Requests, "request"), time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
	for _, rule := range r.Rules {
		rule.write(&b)
	}
	if r.ForgottenKeys > 0 {
		fmt.Fprintf(&b, "\n%d keys were forgotten, because --observe-keys was reached. A later duplicate of one counts as a first call.\n", r.ForgottenKeys)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *RuleReport) write(b *strings.Builder) {
	switch {
	case r.Operation == "":
		b.WriteString("\nBefore any rule\n")
	default:
		fmt.Fprintf(b, "\nRule %s, operation %s\n", r.Rule, r.Operation)
	}
	line := func(n uint64, text string) {
		if n > 0 {
			fmt.Fprintf(b, "%10d  %s\n", n, text)
		}
	}
	from := func(list []CallerCount) {
		for _, c := range list {
			fmt.Fprintf(b, "            %d  %s\n", c.Count, strings.TrimSpace(c.Request+"  "+c.UserAgent))
		}
	}
	next := func(name string) {
		if step := r.NextSteps[name]; step != "" && step != "nothing" {
			fmt.Fprintf(b, "            next: %s\n", step)
		}
	}
	result := func(result Result, text string) {
		if r.Results[result] == 0 {
			return
		}
		line(r.Results[result], text)
		from(r.Callers[result])
		next(string(result))
	}
	listed := map[Result]bool{}
	for _, l := range resultLines {
		listed[l.result] = true
		result(l.result, l.text)
	}
	for _, other := range slices.Sorted(maps.Keys(r.Results)) {
		if !listed[other] {
			result(other, "refused: "+strings.TrimPrefix(string(other), refusedPrefix))
		}
	}
	if len(r.Doubt) == 0 {
		return
	}
	b.WriteString("  of the first calls and repeats, in doubt:\n")
	for _, l := range doubtLines {
		if line(r.Doubt[l.doubt], l.text); r.Doubt[l.doubt] > 0 {
			from(r.DoubtCallers[l.doubt])
			next(string(l.doubt))
		}
	}
}

// Totals are the sums of the results over all rules: names and numbers in turn, as a log
// line takes them.
func (r *Report) Totals() (attributes []any) {
	sums, doubt := map[Result]uint64{}, uint64(0)
	for _, rule := range r.Rules {
		for result, n := range rule.Results {
			sums[result] += n
		}
		for _, n := range rule.Doubt {
			doubt += n
		}
	}
	for _, result := range slices.Sorted(maps.Keys(sums)) {
		attributes = append(attributes, string(result), sums[result])
	}
	return append(attributes, "in_doubt", doubt, "forgotten_keys", r.ForgottenKeys)
}
