package metrics_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

func text(t *testing.T, r *metrics.Registry) string {
	t.Helper()
	var b strings.Builder
	if _, err := r.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func parser() *expfmt.TextParser {
	p := expfmt.NewTextParser(model.UTF8Validation)
	return &p
}

// wants fails unless each line is in the metrics.
func wants(t *testing.T, got string, lines ...string) {
	t.Helper()
	for _, want := range lines {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func TestWriteTo_Events_CountedByKindOperationRule(t *testing.T) {
	var r metrics.Registry
	pay, rest := r.Calls("pay", "POST /pay"), r.Calls("http", "/")
	for range 2 {
		pay.Observe(t.Context(), semel.Event{Kind: semel.EventExecuted, EndsCall: true, Took: 250 * time.Millisecond})
	}
	rest.Observe(t.Context(), semel.Event{Kind: semel.EventRefused, EndsCall: true, Err: &semel.Error{Reason: semel.ErrParked}, Operation: "anything", Tenant: "ann", Key: "12345678"})
	rest.Observe(t.Context(), semel.Event{Kind: "of a later version"})
	got := text(t, &r)
	wants(t, got,
		`semel_events_total{kind="executed",operation="pay",rule="POST /pay"} 2`,
		`semel_events_total{kind="refused_parked",operation="http",rule="/"} 1`,
		`semel_events_total{kind="other",operation="http",rule="/"} 1`,
		`semel_events_total{kind="parked",operation="http",rule="/"} 0`,
		`semel_upstream_seconds_sum{operation="pay",rule="POST /pay"} 0.5`,
		`semel_upstream_seconds_count{operation="pay",rule="POST /pay"} 2`,
		`semel_upstream_seconds_bucket{operation="pay",rule="POST /pay",le="0.1"} 0`,
		`semel_upstream_seconds_bucket{operation="pay",rule="POST /pay",le="0.25"} 2`,
	)
	for _, secret := range []string{"ann", "12345678", "anything"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s is a label", secret)
		}
	}
}

// A call counts once by its outcome, whatever else happens on its way.
func TestWriteTo_Outcomes_EachCallOnce(t *testing.T) {
	var r metrics.Registry
	c := r.Calls("pay", "/")
	g, err := semel.New(memstore.New(nil), &semel.Options{OnDoubt: semel.Park, Observe: c.Observe, Reconcile: func(context.Context, *semel.Execution) (semel.Verdict, error) {
		return semel.Happened("receipt"), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "pay", Tenant: "ann", Key: "k", Payload: semel.NoPayload()}
	for range 3 { // in doubt; reconciled and replayed; replayed
		_ = semel.Once(t.Context(), g, call, func(context.Context, *semel.Execution) error { return errors.New("boom") })
	}
	got := text(t, &r)
	wants(t, got,
		`semel_calls_total{operation="pay",outcome="parked",rule="/"} 1`, `semel_calls_total{operation="pay",outcome="replayed",rule="/"} 2`,
		`semel_calls_total{operation="pay",outcome="executed",rule="/"} 0`, `semel_calls_total{operation="pay",outcome="lease_lost",rule="/"} 0`,
		`semel_events_total{kind="reconciled",operation="pay",rule="/"} 1`, `semel_upstream_seconds_count{operation="pay",rule="/"} 1`,
	)
}

func TestStore_Requests_MeasuredByNameAndAnswer(t *testing.T) {
	var r metrics.Registry
	st := r.Store(down{memstore.New(nil)})
	k := store.Key{Operation: "o", Value: "k"}
	_, _ = st.Get(t.Context(), k) // there is no record, which is an answer
	_, _ = st.Claim(t.Context(), store.Proposal{Key: k})
	wants(t, text(t, &r),
		`semel_store_seconds_count{answered="true",request="get"} 1`, `semel_store_seconds_count{answered="false",request="claim"} 1`,
		`semel_store_seconds_count{answered="true",request="claim"} 0`, `semel_store_seconds_count{answered="true",request="settle"} 0`,
	)
}

// down is a store that does not answer claims.
type down struct{ store.Store }

func (d down) Unwrap() store.Store { return d.Store }

func (down) Claim(context.Context, store.Proposal) (store.Found, error) {
	return store.Found{}, errors.New("connection refused")
}

func TestInDoubt_ParkedRecords_CountedWithAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r metrics.Registry
		st := memstore.New(nil)
		r.InDoubt(st, quiet)
		wants(t, text(t, &r), "semel_in_doubt_records 0", "semel_in_doubt_oldest_seconds 0")
		g, err := semel.New(st, &semel.Options{OnDoubt: semel.Park})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"1", "2"} {
			_ = semel.Once(t.Context(), g, semel.Call{Operation: "pay", Tenant: "ann", Key: key, Payload: semel.NoPayload()}, func(context.Context, *semel.Execution) error { return errors.New("boom") })
			time.Sleep(5 * time.Second)
		}
		wants(t, text(t, &r), "semel_in_doubt_records 0") // a count is used for 10 s
		time.Sleep(time.Second)
		wants(t, text(t, &r), "semel_in_doubt_records 2", "semel_in_doubt_oldest_seconds 11")
	})
}

func TestInDoubt_StoreDown_NaN(t *testing.T) {
	var r metrics.Registry
	r.InDoubt(unlistable{memstore.New(nil)}, quiet)
	wants(t, text(t, &r), "semel_in_doubt_records NaN", "semel_in_doubt_oldest_seconds NaN")
}

// unlistable is a store that does not answer lists.
type unlistable struct{ store.Store }

func (unlistable) List(context.Context, store.Filter) iter.Seq2[store.Found, error] {
	return func(yield func(store.Found, error) bool) { yield(store.Found{}, errors.New("connection refused")) }
}

func TestRegister_Sweeps_LagSinceLastGoodPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r, never metrics.Registry
		var s, unused metrics.Sweeps
		s.Register(&r, time.Minute)
		unused.Register(&never, 0)
		after := s.After(quiet)
		time.Sleep(20 * time.Second)
		after(sweep.Stats{}, errors.New("boom"))
		wants(t, text(t, &r), "semel_sweep_lag_seconds 20", "semel_sweep_errors_total 1")
		s.AfterStep(sweep.Stats{})
		wants(t, text(t, &r), "semel_sweep_lag_seconds 20", "semel_sweep_steps_total 1")
		after(sweep.Stats{Deleted: 3}, nil)
		time.Sleep(time.Second)
		wants(t, text(t, &r), "semel_sweep_lag_seconds 1", "semel_sweep_deleted_records_total 3", "semel_sweep_interval_seconds 60")
		if strings.Contains(text(t, &never), "semel_sweep_lag_seconds") {
			t.Error("a process that never sweeps has a lag")
		}
	})
}

func TestWriteTo_AllMetrics_PrometheusReadsThem(t *testing.T) {
	var r metrics.Registry
	r.Calls(`o"\`, "a\nb").Observe(t.Context(), semel.Event{Kind: semel.EventExecuted, EndsCall: true, Took: 1})
	r.Gauge("semel_ready", "Whether it is ready.", func() float64 { return 1 })
	r.Counter("semel_x_total", "X.", func() float64 { return 3 })
	r.Counters("semel_y_total", "Y.", []string{"event"}, func(yield func(uint64, ...string)) { yield(4, "a"); yield(5, "b") })
	r.Build("v1.2.3", "abc", "go1.26")
	families, err := parser().TextToMetricFamilies(strings.NewReader(text(t, &r)))
	if err != nil {
		t.Fatal(err)
	}
	for name := range families {
		if !strings.HasPrefix(name, "semel_") {
			t.Errorf("the metric %s does not begin with semel_", name)
		}
	}
	if n := families["semel_calls_total"].GetMetric()[0].GetLabel(); len(n) != 3 || n[0].GetValue() != `o"\` && n[1].GetValue() != `o"\` {
		t.Errorf("the labels are %v", n)
	}
	wants(t, text(t, &r), "semel_ready 1", "semel_x_total 3", `semel_y_total{event="a"} 4`, `semel_y_total{event="b"} 5`,
		`semel_build_info{go="go1.26",revision="abc",version="v1.2.3"} 1`)
}

func TestObserve_Concurrent_CountsAll(t *testing.T) {
	var r metrics.Registry
	c := r.Calls("o", "/")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				c.Observe(t.Context(), semel.Event{Kind: semel.EventReplayed, EndsCall: true})
			}
			text(t, &r)
		})
	}
	wg.Wait()
	wants(t, text(t, &r), `semel_calls_total{operation="o",outcome="replayed",rule="/"} 800`, `semel_events_total{kind="replayed",operation="o",rule="/"} 800`)
}
