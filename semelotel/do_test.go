package semelotel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelotel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestDo_Replay_LinksToFirstRun(t *testing.T) {
	w := newWorld(t, semelotel.Options{})
	for name, first := range map[string]func(context.Context, *semel.Execution) (string, error){
		"a result": paid, "a failure": fails(semel.Final(errBoom)),
	} {
		run := w.guard(t, nil, semel.Options{})
		_, _ = semel.Do(t.Context(), run, call("k"), first)
		executed := w.only(t)
		_, _ = semel.Do(t.Context(), run, call("k"), fails(errors.New("runs again")))
		replay := w.only(t)
		if value(replay.Attributes, "semel.outcome") != "replayed" {
			t.Fatalf("%s: the duplicate is %v", name, replay.Attributes)
		}
		if len(executed.Links) != 0 {
			t.Errorf("%s: the first run has links: %v", name, executed.Links)
		}
		if len(replay.Links) != 1 || replay.Links[0].SpanContext.SpanID() != executed.SpanContext.SpanID() ||
			replay.Links[0].SpanContext.TraceID() != executed.SpanContext.TraceID() {
			t.Errorf("%s: the links of the replay are %+v, want one to %v", name, replay.Links, executed.SpanContext)
		}
		if replay.SpanContext.TraceID() == executed.SpanContext.TraceID() {
			t.Errorf("%s: the replay is in the trace of the first run", name)
		}
	}
}

func TestDo_FirstRunNotSampled_RecordHasNoTrace(t *testing.T) {
	w := newWorld(t, semelotel.Options{})
	st := memstore.New(nil)
	unsampled, err := semelotel.New(&semelotel.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))})
	if err != nil {
		t.Fatal(err)
	}
	g, err := semel.New(unsampled.Store(st), &semel.Options{Observe: unsampled.Observe(nil), Holder: "here"})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = semel.Do(t.Context(), unsampled.Runner(g), call("k"), paid)
	if r, err := g.Get(t.Context(), call("k")); err != nil || r.Holder != "here" {
		t.Errorf("the holder is %q, %v", r.Holder, err)
	}
	_, _ = semel.Do(t.Context(), w.guard(t, st, semel.Options{}), call("k"), paid)
	if replay := w.only(t); len(replay.Links) != 0 {
		t.Errorf("the replay links to a trace that nobody has: %v", replay.Links)
	}
}

func TestDo_Attributes_NoKeyTenantPayloadOrError(t *testing.T) {
	for _, c := range []struct {
		options semelotel.Options
		shown   map[string]string
	}{
		{semelotel.Options{}, map[string]string{}},
		{semelotel.Options{Tenant: true}, map[string]string{"semel.tenant": "canary-tenant"}},
		{semelotel.Options{Key: true}, map[string]string{"semel.key": "canary-k"}},
	} {
		w := newWorld(t, c.options)
		run := w.guard(t, nil, semel.Options{OnDoubt: semel.Park})
		_, _ = semel.Do(t.Context(), run, call("k"), fails(errBoom))
		_, _ = semel.Do(t.Context(), run, call("k"), paid)
		spans := w.take()
		if len(spans) != 2 {
			t.Fatalf("%d spans, want 2", len(spans))
		}
		for _, s := range spans {
			for _, a := range s.Attributes {
				if _, asked := c.shown[string(a.Key)]; !asked && strings.Contains(a.Value.String(), "canary") {
					t.Errorf("%+v: %s is %q", c.options, a.Key, a.Value.String())
				}
			}
			for name, want := range c.shown {
				if got := value(s.Attributes, name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			if len(value(s.Attributes, "semel.key_hash")) != 8 || value(s.Attributes, "semel.operation") != "charge" || s.Name != "semel charge" {
				t.Errorf("%s: %v", s.Name, s.Attributes)
			}
			if strings.Contains(fmt.Sprint(s.Status, s.Events), "canary") {
				t.Errorf("the status %v or the events %v show a text of the handler", s.Status, s.Events)
			}
		}
	}
}

func TestDo_EachOutcome_CountedOnceAndOnSpan(t *testing.T) {
	w := newWorld(t, semelotel.Options{})
	run := w.guard(t, nil, semel.Options{})
	park := w.guard(t, nil, semel.Options{OnDoubt: semel.Park})
	other := call("k")
	other.Payload = semel.JSON("another")
	want := map[string]float64{}
	for _, c := range []struct {
		run     semel.Runner
		call    semel.Call
		handler func(context.Context, *semel.Execution) (string, error)
		outcome string
		status  codes.Code
	}{
		{run, call("k"), paid, "executed", codes.Unset},
		{run, call("k"), paid, "replayed", codes.Unset},
		{run, other, paid, "refused_mismatch", codes.Unset},
		{run, call("f"), fails(semel.Final(errBoom)), "failed", codes.Error},
		{run, call("r"), fails(errBoom), "released", codes.Error},
		{park, call("p"), fails(errBoom), "parked", codes.Error},
		{park, call("p"), paid, "refused_parked", codes.Error},
	} {
		_, _ = semel.Do(t.Context(), c.run, c.call, c.handler)
		want["charge "+c.outcome]++
		span := w.only(t)
		if got := value(span.Attributes, "semel.outcome"); got != c.outcome || span.Status.Code != c.status {
			t.Errorf("the span has the outcome %q and the status %v, want %q and %v", got, span.Status, c.outcome, c.status)
		}
	}
	if got := w.metric(t, "semel.calls", "semel.operation", "semel.outcome"); !maps.Equal(got, want) {
		t.Errorf("semel.calls is %v, want %v", got, want)
	}
	handlers := w.metric(t, "semel.handler.duration", "semel.outcome")
	if want := map[string]float64{"executed": 1, "failed": 1, "released": 1, "parked": 1}; !maps.Equal(handlers, want) {
		t.Errorf("the handlers' runs are %v, want %v", handlers, want)
	}
	requests := w.metric(t, "semel.store.duration", "semel.store.request", "semel.store.answered")
	if requests["claim true"] != 7 || requests["settle true"] != 4 || len(requests) != 2 {
		t.Errorf("the requests to the store are %v, want 7 claims and 4 settlements", requests)
	}
}

func TestDo_HandlersSpansAndCalls_AreInCallsSpan(t *testing.T) {
	w := newWorld(t, semelotel.Options{})
	run := w.guard(t, nil, semel.Options{})
	_, err := semel.Do(t.Context(), run, call("k"), func(ctx context.Context, x *semel.Execution) (string, error) {
		_, span := w.tracer.Tracer("bank").Start(ctx, "bank")
		span.End()
		bare := run.Unwrap() // its call has a span without the Runner
		if _, err := semel.Do(ctx, bare, x.Step("ledger"), paid); err != nil {
			return "", err
		}
		return paid(ctx, x)
	})
	if err != nil {
		t.Fatal(err)
	}
	spans := w.take()
	if len(spans) != 3 {
		t.Fatalf("%d spans, want 3: %+v", len(spans), spans)
	}
	outer := spans[2]
	if value(outer.Attributes, "semel.operation") != "charge" {
		t.Errorf("the call's span has the attributes of another call: %v", outer.Attributes)
	}
	for _, s := range spans[:2] {
		if s.Parent.SpanID() != outer.SpanContext.SpanID() {
			t.Errorf("the parent of %q is %v, want the call's span", s.Name, s.Parent)
		}
	}
	if spans[1].Name != "semel charge#ledger" || value(spans[1].Attributes, "semel.outcome") != "executed" {
		t.Errorf("the step's span is %q with %v", spans[1].Name, spans[1].Attributes)
	}
}

func TestDo_Takeover_LinksToRunThatDied(t *testing.T) {
	w := newWorld(t, semelotel.Options{})
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	st := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	dying := w.guard(t, settleFails{st}, semel.Options{SettleTimeout: time.Millisecond})
	_, _ = semel.Do(t.Context(), dying, call("k"), paid)
	died := w.only(t)
	now = now.Add(time.Hour)
	_, err := semel.Do(t.Context(), w.guard(t, st, semel.Options{}), call("k"), paid)
	if err != nil {
		t.Fatal(err)
	}
	second := w.only(t)
	if len(second.Links) != 1 || second.Links[0].SpanContext.SpanID() != died.SpanContext.SpanID() {
		t.Errorf("the links are %+v, want one to %v", second.Links, died.SpanContext)
	}
	if len(second.Events) != 1 || second.Events[0].Name != "semel.taken_over" {
		t.Errorf("the span's events are %v", second.Events)
	}
	_, _ = semel.Do(t.Context(), w.guard(t, st, semel.Options{}), call("k"), paid)
	if replay := w.only(t); len(replay.Links) != 1 || replay.Links[0].SpanContext.SpanID() != second.SpanContext.SpanID() {
		t.Errorf("the links of the replay are %+v, want one to the run whose result is kept", replay.Links)
	}
}

// settleFails is a store that does not answer settlements.
type settleFails struct{ store.Store }

func (settleFails) Settle(context.Context, store.Lease, store.Settlement) error { return errBoom }

func TestDo_Reconciled_ReplayLinksToFirstRun(t *testing.T) {
	w := newWorld(t, semelotel.Options{})
	run := w.guard(t, nil, semel.Options{OnDoubt: semel.Park, Reconcile: func(context.Context, *semel.Execution) (semel.Verdict, error) {
		return semel.Happened("receipt"), nil
	}})
	_, _ = semel.Do(t.Context(), run, call("k"), fails(errBoom))
	first := w.only(t)
	for range 2 { // the first one asks the reconciler
		if _, err := semel.Do(t.Context(), run, call("k"), fails(errBoom)); err != nil {
			t.Fatal(err)
		}
		if s := w.only(t); len(s.Links) != 1 || s.Links[0].SpanContext.SpanID() != first.SpanContext.SpanID() {
			t.Errorf("the links are %+v, want one to %v", s.Links, first.SpanContext)
		}
	}
}

func TestDo_LeaseLost_Counted(t *testing.T) {
	w := newWorld(t, semelotel.Options{})
	run := w.guard(t, lostSettle{memstore.New(nil)}, semel.Options{})
	_, err := semel.Do(t.Context(), run, call("k"), paid)
	if !errors.Is(err, semel.ErrLeaseLost) {
		t.Fatal(err)
	}
	if got := w.metric(t, "semel.leases.lost", "semel.operation"); got["charge"] != 1 {
		t.Errorf("semel.leases.lost is %v", got)
	}
	if s := w.only(t); value(s.Attributes, "semel.outcome") != "lease_lost" || s.Status.Code != codes.Error {
		t.Errorf("the span: %v, %v", s.Attributes, s.Status)
	}
}

// lostSettle is a store in which another process has always taken the claim over.
type lostSettle struct{ store.Store }

func (lostSettle) Settle(context.Context, store.Lease, store.Settlement) error {
	return store.ErrLeaseLost
}

func TestDo_HandlerPanics_SpanEnds(t *testing.T) {
	w := newWorld(t, semelotel.Options{})
	run := w.guard(t, nil, semel.Options{})
	func() {
		defer func() { _ = recover() }()
		_, _ = semel.Do(t.Context(), run, call("k"), func(context.Context, *semel.Execution) (string, error) { panic("boom") })
	}()
	if s := w.only(t); value(s.Attributes, "semel.outcome") != "released" {
		t.Errorf("the span: %v", s.Attributes)
	}
}

// A call without the Runner has a span of the length of its handler, in the caller's.
func TestObserve_NoRunner_SpanOfHandlersLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, semelotel.Options{})
		run := w.guard(t, nil, semel.Options{}).Unwrap()
		ctx, outer := w.tracer.Tracer("test").Start(t.Context(), "outer")
		_, _ = semel.Do(ctx, run, call("k"), func(context.Context, *semel.Execution) (string, error) {
			time.Sleep(time.Second)
			return "", nil
		})
		s := w.only(t)
		if s.Parent.SpanID() != trace.SpanFromContext(ctx).SpanContext().SpanID() || s.EndTime.Sub(s.StartTime) != time.Second {
			t.Errorf("the span has the parent %v and takes %v, want the caller's and 1s", s.Parent, s.EndTime.Sub(s.StartTime))
		}
		outer.End()
	})
}
