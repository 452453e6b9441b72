package moved_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/moved"
)

// clocked is a store in memory whose clock stands still unless it is advanced.
type clocked struct {
	*memstore.Store
	micros atomic.Int64
}

const noon = int64(1_795_176_000_000_000)

func newClocked(micros int64) *clocked {
	c := &clocked{}
	c.micros.Store(micros)
	c.Store = memstore.New(&memstore.Options{Now: func() time.Time { return time.UnixMicro(c.micros.Load()) }})
	return c
}

func (c *clocked) Unwrap() store.Store { return c.Store }

func (c *clocked) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// stores are an old store and a new one. The clock of the new one is a second ahead.
func stores() (to, from *clocked) { return newClocked(noon + 1_000_000), newClocked(noon) }

func key(value string) store.Key {
	return store.Key{Operation: "charge", Tenant: "ann", Value: value}
}

func owner(n byte) store.Owner { return store.Owner{n, 1} }

// put brings a key to a state that ends in an hour.
func put(t *testing.T, st store.Store, k store.Key, s store.State) store.Record {
	t.Helper()
	p := store.Proposal{Key: k, State: store.Processing, Owner: owner(byte(s)), Holder: "old/1", Attempt: 1, Lease: time.Hour}
	if s == store.Started {
		p.State = s
	}
	f, err := st.Claim(t.Context(), p)
	if err != nil || !f.Won {
		t.Fatalf("claim of %q: won %v, %v", k.Value, f.Won, err)
	}
	if s != p.State {
		end := store.Settlement{State: s, Attempt: 1, Keep: time.Hour}
		if s.Terminal() {
			end.Outcome = store.Outcome{Code: 201, Body: []byte("answer of " + k.Value)}
		}
		if err := st.Settle(t.Context(), f.Record.Lease(), end); err != nil {
			t.Fatal(err)
		}
	}
	return get(t, st, k)
}

func get(t *testing.T, st store.Store, k store.Key) store.Record {
	t.Helper()
	f, err := st.Get(t.Context(), k)
	if err != nil {
		t.Fatalf("get %q: %v", k.Value, err)
	}
	return f.Record
}

// join makes the store of both.
func join(t *testing.T, to, from store.Store) store.Store {
	t.Helper()
	st, err := moved.New(t.Context(), to, from)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// service is a handler that counts its runs.
type service struct {
	guard *semel.Guard
	runs  int
	fail  error
}

func newService(t *testing.T, st store.Store, onDoubt semel.Policy) *service {
	t.Helper()
	g, err := semel.New(st, &semel.Options{OnDoubt: onDoubt, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return &service{guard: g}
}

func (s *service) call(value string) (string, error) {
	call := semel.Call{Operation: "charge", Tenant: "ann", Key: value, Payload: semel.NoPayload()}
	return semel.Do(context.Background(), s.guard, call, func(context.Context, *semel.Execution) (string, error) {
		s.runs++
		return fmt.Sprint("run ", s.runs), s.fail
	})
}

var (
	states  = []store.State{store.Started, store.Processing, store.Released, store.Completed, store.Failed, store.Unknown}
	errDown = errors.New("the store is down")
)

// down is a store that answers nothing.
type down struct{ store.Store }

func (down) Get(context.Context, store.Key) (store.Found, error) { return store.Found{}, errDown }
func (d down) Unwrap() store.Store                               { return d.Store }

// newClockedRunning is a store in memory whose clock runs.
func newClockedRunning() store.Store { return memstore.New(nil) }
