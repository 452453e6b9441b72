package semelotel_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelotel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestCountInDoubt_ParkedCalls_Gauges(t *testing.T) {
	w := newWorld(t, semelotel.Options{})
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	st := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	if err := w.tel.CountInDoubt(st); err != nil {
		t.Fatal(err)
	}
	run := w.guard(t, st, semel.Options{OnDoubt: semel.Park})
	_, _ = semel.Do(t.Context(), run, call("1"), fails(errBoom))
	now = now.Add(time.Minute)
	_, _ = semel.Do(t.Context(), run, call("2"), fails(errBoom))
	now = now.Add(time.Minute)
	if n, age := w.metric(t, "semel.records.in_doubt")[""], w.metric(t, "semel.records.in_doubt.age")[""]; n != 2 || age != 120 {
		t.Errorf("%v records in doubt, the oldest for %v s; want 2 and 120", n, age)
	}
	if err := w.tel.CountInDoubt(unlisted{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a store that lists nothing: %v", err)
	}
}

// unlisted is a store without optional interfaces.
type unlisted struct{ store.Store }

// silent gives no answer to the first claim until its caller leaves.
type silent struct {
	store.Store
	leave context.CancelFunc // ends the caller
	asked atomic.Bool
}

func (s *silent) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if s.asked.CompareAndSwap(false, true) {
		s.leave()
		<-ctx.Done()
		return store.Found{}, ctx.Err()
	}
	return s.Store.Claim(ctx, p)
}

// noted tells when a claim has been answered and noted.
type noted struct {
	store.Store
	answered chan struct{}
}

func (n *noted) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	f, err := n.Store.Claim(ctx, p)
	if err == nil {
		close(n.answered)
	}
	return f, err
}

// A claim without an answer is sent again in the background, with the values of the call's
// context, while the call ends. The race detector must find nothing.
func TestDo_ClaimWithoutAnswer_SpanIsReadAndWrittenInTurn(t *testing.T) {
	w := newWorld(t, semelotel.Options{})
	inner := memstore.New(nil)
	if _, err := semel.Do(t.Context(), w.guard(t, inner, semel.Options{}), call("k"), paid); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	st := &noted{w.tel.Store(&silent{Store: inner, leave: cancel}), make(chan struct{})}
	g, err := semel.New(st, &semel.Options{Observe: w.tel.Observe(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := semel.Do(ctx, w.tel.Runner(g), call("k"), paid); err == nil {
		t.Error("a call without an answer has no error")
	}
	<-st.answered
}
