package semelotel_test

import (
	"errors"
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
