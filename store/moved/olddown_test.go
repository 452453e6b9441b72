package moved_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// The old store does not answer, but the call has a record in the new one.
func TestClaim_OldStoreDown_RecordOfNewStoreIsNotRunUnprotected(t *testing.T) {
	for _, state := range []store.State{store.Processing, store.Completed} {
		to, from := stores()
		put(t, to, key("k"), state)
		g, err := semel.New(join(t, to, down{from}), &semel.Options{UnprotectedOnOutage: true})
		if err != nil {
			t.Fatal(err)
		}
		s := &service{guard: g}
		if _, err := s.call("k"); !errors.Is(err, semel.ErrUnavailable) || s.runs != 0 {
			t.Errorf("%v in the new store: %d runs, %v; want ErrUnavailable", state, s.runs, err)
		}
		if _, err := s.call("new"); err != nil || s.runs != 1 {
			t.Errorf("a new call: %d runs, %v; want one without a record", s.runs, err)
		}
	}
}

// pinged is a store with a Ping of its own.
type pinged struct {
	store.Store
	err error
}

func (p pinged) Ping(context.Context) error { return p.err }
func (p pinged) Unwrap() store.Store        { return p.Store }

// Each call needs both stores, so Ping asks both, also if the new one has a Ping of its own.
func TestPing_OneStoreIsDown_Fails(t *testing.T) {
	for name, c := range map[string]struct {
		to, from func(store.Store) store.Store
		want     string
	}{
		"both answer":             {want: ""},
		"the old store is down":   {from: func(st store.Store) store.Store { return down{st} }, want: "the old store"},
		"the new store is down":   {to: func(st store.Store) store.Store { return pinged{st, errDown} }, want: "the new store"},
		"the new reads no record": {to: func(st store.Store) store.Store { return down{st} }, want: "the new store"},
	} {
		to, from := stores()
		var newStore, oldStore store.Store = pinged{to, nil}, from
		if c.to != nil {
			newStore = c.to(to)
		}
		if c.from != nil {
			oldStore = c.from(from)
		}
		err := store.Ping(t.Context(), join(t, newStore, oldStore))
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, errDown) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want an error that names %q", name, err, c.want)
		}
	}
}
