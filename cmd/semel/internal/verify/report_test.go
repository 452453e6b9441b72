package verify

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// sample is a report with everything in it.
func sample() *Report {
	r := &Report{
		Store: "sqlite:a.db", Run: "run-1", Seed: 3, Connections: 3, Processes: 2, Resent: 1, Seconds: 1.25,
		Latency: &Latency{Claim: Quantiles{1, 2, 3}, Settle: Quantiles{4, 5, 6}, Duplicate: Quantiles{0.125, 0.25, 0.5}},
		Checks: []Result{
			{Name: "clock", Claim: "One clock.", Verdict: OK, Trials: 10, Seconds: 0.5, Violations: []string{}, Warnings: []string{"it is slow"}, Info: []string{"off by 1s"}},
			{Name: "data", Claim: "All comes back.", Verdict: Broken, Trials: 5, Failures: 2, Violations: []string{"a is b", "and 1 more"}, Warnings: []string{}, Info: []string{}},
			{Name: "guard", Claim: "Once.", Verdict: Incomplete, Violations: []string{}, Warnings: []string{}, Info: []string{"it could not be tried to the end: down"}},
			{Name: "process-race", Claim: "One.", Verdict: Skipped, Violations: []string{}, Warnings: []string{}, Info: []string{}},
		},
	}
	return r
}

func TestText_BrokenPromise_IsQuoted(t *testing.T) {
	r := sample()
	_ = r.judge()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `sqlite:a.db, 3 connections, 2 more processes

  ok         clock              10 trials   0.50 s
      warning: it is slow
      off by 1s
  BROKEN     data                5 trials   0.00 s
      promised: All comes back.
      broken: a is b
      broken: and 1 more
  INCOMPLETE guard               0 trials   0.00 s
      it could not be tried to the end: down
  skipped    process-race        0 trials   0.00 s

  one caller, in ms        p50      p99      max
    claim                1.00     2.00     3.00
    settle               4.00     5.00     6.00
    duplicate            0.12     0.25     0.50

  15 trials, 2 broke a promise, 1 warning, 1.2 s; 1 call sent again because no answer came
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestVerdict_BrokenAndSkipped_AreNamed(t *testing.T) {
	r := sample()
	err := r.judge()
	if want := "the store broke a promise: data (2 of 5); could not be tried to the end: guard"; err == nil || err.Error() != want || r.OK {
		t.Errorf("got %v, OK %v", err, r.OK)
	}
	r.Checks = r.Checks[:1]
	if err := r.judge(); err != nil || !r.OK {
		t.Errorf("warnings alone: %v", err)
	}
	if _, ok := r.Result("guard"); ok {
		t.Error("a check that did not run has a result")
	}
}

func TestJSON_Report_IsOneDocumentWithoutNulls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r, err := Run(t.Context(), targetOf(new(clockwork).sound()), small("settings", "latency"))
		b, jerr := json.Marshal(r)
		if err != nil || jerr != nil || strings.Contains(string(b), "null") {
			t.Fatalf("%v, %v, %s", err, jerr, b)
		}
		for _, want := range []string{`"ok":true`, `"run":"run-`, `"checks":[{"name":"settings","claim":"`, `"verdict":"ok","trials":1,"failures":0,"violations":[],"warnings":[],"info":[]`, `"p99_ms":`, `"seconds":`} {
			if !strings.Contains(string(b), want) {
				t.Errorf("no %s in %s", want, b)
			}
		}
	})
}

func TestReport_ManyViolations_ShowsFirstAndCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := new(clockwork).sound()
		grantsTwice(s)
		r, _ := Run(t.Context(), targetOf(s), small("claim-race"))
		c, _ := r.Result("claim-race")
		if len(c.Violations) != most+1 || c.Violations[most] != "and 7 more" || c.Failures != 12 {
			t.Errorf("%d failures: %q", c.Failures, c.Violations)
		}
	})
}

func TestReport_WriterFails_IsAnError(t *testing.T) {
	if err := sample().WriteText(fails{}); err == nil {
		t.Error("no error")
	}
}

type fails struct{}

func (fails) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestQuantiles_Values_ByNearestRank(t *testing.T) {
	var ds []time.Duration
	for i := 100; i > 0; i-- {
		ds = append(ds, time.Duration(i)*time.Millisecond)
	}
	if got := quantiles(ds); got != (Quantiles{50, 99, 100}) {
		t.Errorf("%+v", got)
	}
	if got := quantiles(ds[:1]); got != (Quantiles{1, 1, 1}) {
		t.Errorf("%+v", got)
	}
}

func TestSeed_Data_DependsOnIt(t *testing.T) {
	body := func(seed uint64, name string) string {
		p := &probe{o: &Options{Seed: seed}, name: name}
		var b strings.Builder
		for _, o := range outcomes(p.random(), 5000) {
			b.Write(o.Body)
		}
		return b.String()
	}
	first := body(1, "data")
	if again := body(1, "data"); again != first || body(2, "data") == first || body(1, "keys") == first {
		t.Error("the seed does not decide")
	}
}

func TestDifferences_Fields_AreNamed(t *testing.T) {
	full := func() store.Record {
		return store.Record{
			Outcome: store.Outcome{Code: 1, Codec: "c", Gone: true, Body: []byte("b"), Header: []store.Header{{Name: "a", Value: "b"}}},
		}
	}
	at := time.Unix(1, 0)
	for name, change := range map[string]func(*store.Record){
		"Key": func(r *store.Record) { r.Key.Tenant = "x" }, "State": func(r *store.Record) { r.State = 3 }, "Policy": func(r *store.Record) { r.Policy = 1 },
		"Fence": func(r *store.Record) { r.Fence = 1 }, "Owner": func(r *store.Record) { r.Owner[0] = 1 }, "Holder": func(r *store.Record) { r.Holder = "x" },
		"Fingerprint": func(r *store.Record) { r.Fingerprint.Sum = "x" }, "Attempt": func(r *store.Record) { r.Attempt = 1 },
		"LastError": func(r *store.Record) { r.LastError = "x" }, "Until": func(r *store.Record) { r.Until = at }, "Created": func(r *store.Record) { r.Created = at },
		"Updated": func(r *store.Record) { r.Updated = at }, "Completed": func(r *store.Record) { r.Completed = at }, "Expires": func(r *store.Record) { r.Expires = at },
		"Format": func(r *store.Record) { r.Format = 2 }, "the outcome's Code": func(r *store.Record) { r.Outcome.Code = 2 },
		"its Codec": func(r *store.Record) { r.Outcome.Codec = "" }, "its Gone": func(r *store.Record) { r.Outcome.Gone = false },
		"its body": func(r *store.Record) { r.Outcome.Body = []byte("c") }, "its header": func(r *store.Record) { r.Outcome.Header = nil },
	} {
		want, got := full(), full()
		change(&got)
		if d := differs(&want, &got); !strings.HasPrefix(d, name+" is ") || strings.Contains(d, ";") {
			t.Errorf("%s: %q", name, d)
		}
	}
	want, got := full(), full()
	if d := differs(&want, &got); d != "" {
		t.Errorf("equal records differ: %s", d)
	}
}

func TestNoise_Bytes_DoNotRepeat(t *testing.T) {
	b := noise(rand.New(rand.NewPCG(1, 1)), 1000)
	seen := map[byte]bool{}
	for _, c := range b {
		seen[c] = true
	}
	if len(seen) < 200 {
		t.Errorf("only %d different bytes", len(seen))
	}
}

func TestProgress_NoTerminal_WritesNothing(t *testing.T) {
	var b strings.Builder
	if Progress(&b) != nil {
		t.Error("a pipe is told of progress")
	}
	tell := progress(&b)
	tell("clock")
	tell("")
	if got := b.String(); got != "\r\x1b[Kclock…\r\x1b[K" {
		t.Errorf("got %q", got)
	}
}
