package sweep_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

const pay = "pay"

var errBoom = errors.New("boom")

func ann(key string) semel.Call {
	return semel.Call{Operation: pay, Tenant: "ann", Key: key, Payload: semel.NoPayload()}
}

func guard(t testing.TB, st store.Store, o *semel.Options) *semel.Guard {
	t.Helper()
	g, err := semel.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// handler returns an outcome and an error.
func handler(body string, err error) semel.Handler {
	return func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Body: []byte(body)}, err
	}
}

// stateOf is the state of a record, and its record.
func stateOf(t testing.TB, st store.Store, key string) (store.State, store.Record) {
	t.Helper()
	f, err := st.Get(t.Context(), store.Key{Operation: pay, Tenant: "ann", Value: key})
	if err != nil {
		t.Fatalf("the record of %q: %v", key, err)
	}
	return f.Record.State, f.Record
}

// crash claims a key as a process does that then dies. Zero fields of p get
// values.
func crash(t testing.TB, st store.Store, key string, p store.Proposal) {
	t.Helper()
	if p.Key.Operation == "" {
		p.Key.Operation = pay
	}
	p.Key.Tenant, p.Key.Value = "ann", key
	if p.State == 0 {
		p.State = store.Processing
	}
	p.Owner, p.Holder, p.Attempt, p.Keep = store.Owner{1}, "dead/1", 1, time.Hour
	if f, err := st.Claim(t.Context(), p); err != nil || !f.Won {
		t.Fatalf("claim of %q: won %v, %v", key, f.Won, err)
	}
}

// newClockedStore makes a memory store whose clock advance moves.
func newClockedStore() (st *memstore.Store, advance func(time.Duration)) {
	var mu sync.Mutex
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	read := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	return memstore.New(&memstore.Options{Now: read}), func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
}
