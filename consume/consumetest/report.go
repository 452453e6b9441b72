package consumetest

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// figure is what this repository's evidence collects from a test's log.
type figure struct {
	Claim    string `json:"claim"`
	Where    string `json:"where"`
	Trials   int    `json:"trials"`
	Failures int    `json:"failures"`
	Control  bool   `json:"control"`
	Detail   string `json:"detail"`
}

func (f *figure) report(t testing.TB) {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", text)
}

// long reports whether the long form was asked for.
func long() bool { return os.Getenv("SEMEL_EVIDENCE") == "1" }

// ReportRestarts runs [Restarts] for a single consumer and for a group of two: so many
// rounds each, and 50 with SEMEL_EVIDENCE=1. It logs the counts as a figure for the
// evidence. disturb may be nil; it is called for the group only, because a broker that
// restarts may deliver in another order.
func ReportRestarts(t *testing.T, where string, h Harness, rounds int, disturb func(round int)) {
	t.Helper()
	if long() {
		rounds = 50
	}
	for name, c := range map[string]Campaign{
		"a single consumer": {Rounds: rounds}, "a group of two": {Rounds: rounds, Group: true, Disturb: disturb},
	} {
		t.Run(name, func(t *testing.T) {
			got := Restarts(t, h, c)
			f := &figure{
				Claim: name + " that restarts while handlers fail and are slow: no message is lost, none is a dead letter before its handler has begun often enough, and no effect is doubled",
				Where: where, Trials: got.Messages, Failures: got.Faults(),
				Detail: fmt.Sprintf("%d restarts, %d effects, %d dead letters", rounds, got.Effects, got.Letters),
			}
			if !c.Group {
				f.Claim += "; the order of each order key is kept"
			}
			f.report(t)
		})
	}
}

// ReportStuck measures [StuckKey] and [StuckShard], and logs the ratios. A ratio above 2
// counts as a failure of the figure in the long form, but fails no test, because a busy
// machine changes it.
func ReportStuck(t *testing.T, where string, h Harness) {
	t.Helper()
	probes := 10
	if long() {
		probes = 300
	}
	for name, measure := range map[string]func(*testing.T, Harness, int) Latency{"one order key": StuckKey, "one shard of the store": StuckShard} {
		t.Run(name, func(t *testing.T) {
			l := measure(t, h, probes)
			f := &figure{
				Claim: "while " + name + " is stuck, the median latency of the others is below twice their idle latency", Where: where, Trials: probes,
				Detail: fmt.Sprintf("idle %v, beside the stuck %v: %.2f times", l.Idle, l.Stuck, l.Ratio()),
			}
			if l.Ratio() > 2 {
				f.Failures = probes
			}
			f.report(t)
		})
	}
}
