// Package observe counts what semel proxy would do with requests that it forwards
// unchanged, and reports the counts.
package observe

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/metrics"
)

// Result is what the proxy would have done with a request. Refusals without a constant
// are [Refused] with their code.
type Result string

// The results.
const (
	First        Result = "first"              // the first request with its key: sent to the service
	Again        Result = "again"              // a repeat for which no answer is kept: sent to the service
	DuringFirst  Result = "duplicate_during"   // a duplicate while the first request ran
	AfterFirst   Result = "duplicate_after"    // a duplicate after the first had ended: answered from the record
	InDoubt      Result = "duplicate_in_doubt" // a duplicate of a parked request
	Mismatch     Result = "mismatch"           // the key of another request
	Unkeyed      Result = "unkeyed"            // no key, and none is required: passes unprotected
	KeyMissing   Result = "key_missing"        // no key, and one is required
	KeyMalformed Result = "key_malformed"
	Passed       Result = "passed"     // of no protected method, or in a rule with pass-through
	Unobserved   Result = "unobserved" // it ended before it could be compared
)

// refusedPrefix begins the other refusals.
const refusedPrefix = "refused_"

// Refused is the result of a refusal with a code of the proxy or of package semelhttp.
func Refused(code string) Result { return Result(refusedPrefix + code) }

// Doubt is why an answer leaves open whether the request took effect.
type Doubt string

// The kinds of doubt. None: the answer leaves nothing open.
const (
	None        Doubt = ""
	ServerError Doubt = "server_error" // the service answered 5xx, or another status of the table
	Silence     Doubt = "silence"      // no answer came, or it broke off, or it came too late
	ClientLeft  Doubt = "client_left"  // the client ended the request before its answer
)

// Rule names the requests of a rule of the configuration. The zero Rule stands for
// requests that are refused before a rule is looked for.
type Rule struct{ Operation, Match string }

// Counts counts results. Safe for concurrent use. Make it with NewCounts.
type Counts struct {
	memory *Memory
	since  time.Time

	mu      sync.Mutex
	results map[cell[Result]]uint64
	doubts  map[cell[Doubt]]uint64
	callers map[cell[Result]]callers
	asked   map[cell[Doubt]]callers // whose answers leave doubt
}

type cell[K ~string] struct {
	rule Rule
	kind K
}

// NewCounts makes the counts of a proxy. m holds its keys.
func NewCounts(m *Memory) *Counts {
	return &Counts{memory: m, since: time.Now(), results: map[cell[Result]]uint64{}, doubts: map[cell[Doubt]]uint64{}, callers: map[cell[Result]]callers{}, asked: map[cell[Doubt]]callers{}}
}

// Add counts a request.
func (c *Counts) Add(rule Rule, r Result, d Doubt, from Caller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := cell[Result]{rule, r}
	c.results[at]++
	if r.namesCallers() {
		count(c.callers, at, from)
	}
	if d != None {
		in := cell[Doubt]{rule, d}
		c.doubts[in]++
		count(c.asked, in, from)
	}
}

// Report is a copy of all counts.
func (c *Counts) Report() *Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	rep := &Report{Since: c.since.UTC(), Seconds: time.Since(c.since).Seconds()}
	rep.Keys, rep.ForgottenKeys = c.memory.Keys()
	byRule := map[Rule]*RuleReport{}
	of := func(r Rule) *RuleReport {
		if byRule[r] == nil {
			byRule[r] = &RuleReport{
				Operation: r.Operation, Rule: r.Match, Results: map[Result]uint64{}, Doubt: map[Doubt]uint64{},
				Callers: map[Result][]CallerCount{}, DoubtCallers: map[Doubt][]CallerCount{}, NextSteps: map[string]string{},
			}
		}
		return byRule[r]
	}
	for at, n := range c.results {
		r := of(at.rule)
		r.Results[at.kind] = n
		r.NextSteps[string(at.kind)] = nextStep(at.kind)
		r.Requests += n
		rep.Requests += n
	}
	for at, n := range c.doubts {
		r := of(at.rule)
		r.Doubt[at.kind] = n
		r.NextSteps[string(at.kind)] = doubtSteps[at.kind]
	}
	for at, from := range c.callers {
		of(at.rule).Callers[at.kind] = from.list()
	}
	for at, from := range c.asked {
		of(at.rule).DoubtCallers[at.kind] = from.list()
	}
	for _, r := range byRule {
		rep.Rules = append(rep.Rules, r)
	}
	slices.SortFunc(rep.Rules, func(a, b *RuleReport) int {
		return cmp.Or(strings.Compare(a.Operation, b.Operation), strings.Compare(a.Rule, b.Rule))
	})
	return rep
}

// Register adds the counts to the metrics of the process. Not safe for concurrent use.
func (c *Counts) Register(r *metrics.Registry) {
	r.Counters("semel_observed_requests_total", "Requests that were forwarded unchanged, by what the proxy would have done with them.",
		[]string{"operation", "rule", "result"}, func(yield func(n uint64, values ...string)) {
			for _, rule := range c.Report().Rules {
				for result, n := range rule.Results {
					yield(n, rule.Operation, rule.Rule, string(result))
				}
			}
		})
	r.Counters("semel_observed_doubt_total", "Answers to first calls and repeats that leave open whether the request took effect, by reason.",
		[]string{"operation", "rule", "reason"}, func(yield func(n uint64, values ...string)) {
			for _, rule := range c.Report().Rules {
				for reason, n := range rule.Doubt {
					yield(n, rule.Operation, rule.Rule, string(reason))
				}
			}
		})
	r.Gauge("semel_observed_keys", "Keys that the observer remembers.", func() float64 {
		held, _ := c.memory.Keys()
		return float64(held)
	})
	r.Counter("semel_observed_forgotten_keys_total", "Keys that the observer forgot because observe-keys was reached; a later duplicate of one counts as a first call.", func() float64 {
		_, forgotten := c.memory.Keys()
		return float64(forgotten)
	})
}
