package encrypted_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
)

// canary is in every result of these tests, and in every error.
const canary = "canary-4711-of-a-customer"

var errDown = errors.New("the key service is down")

// ring is keys in memory. The key of an ID is made of the ID.
type ring struct {
	mu   sync.Mutex
	ids  []string // the first encrypts
	down error    // the answer to everything; nil: none
}

func newRing(ids ...string) *ring { return &ring{ids: ids} }

func (r *ring) set(down error, ids ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down, r.ids = down, ids
}

func keyOf(id string) []byte { return bytes.Repeat([]byte(id[:1]), 32) }

func (r *ring) Current(context.Context) (string, []byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down != nil {
		return "", nil, r.down
	}
	return r.ids[0], keyOf(r.ids[0]), nil
}

func (r *ring) Key(_ context.Context, id string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down != nil {
		return nil, r.down
	}
	for _, known := range r.ids {
		if id == known {
			return keyOf(id), nil
		}
	}
	return nil, fmt.Errorf("%w %q", encrypted.ErrUnknownKey, id)
}

// changed is a store in which somebody has changed what is read.
type changed struct {
	*memstore.Store
	record func(*store.Record)
	step   func(*store.Step)
	lease  func(store.Lease) store.Lease // whose steps Steps returns
}

func (c *changed) Get(ctx context.Context, k store.Key) (store.Found, error) {
	f, err := c.Store.Get(ctx, k)
	if c.record != nil {
		f.Record.Outcome = f.Record.Outcome.Clone()
		c.record(&f.Record)
	}
	return f, err
}

func (c *changed) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	if c.lease != nil {
		l = c.lease(l)
	}
	steps, err := c.Store.Steps(ctx, l)
	for i := range steps {
		steps[i].Outcome = steps[i].Outcome.Clone()
		if c.step != nil {
			c.step(&steps[i])
		}
	}
	return steps, err
}

func ann(value string) store.Key { return store.Key{Operation: "pay", Tenant: "ann", Value: value} }

func owner(n byte) store.Owner { return store.Owner{n, 7} }

// claim claims a key that has no record.
func claim(t testing.TB, st store.Store, k store.Key, o store.Owner) store.Lease {
	t.Helper()
	f, err := st.Claim(t.Context(), store.Proposal{Key: k, State: store.Processing, Owner: o, Attempt: 1, Lease: time.Hour, Keep: time.Hour})
	if err != nil || !f.Won {
		t.Fatalf("claim of %q: won %v, %v", k.Value, f.Won, err)
	}
	return f.Record.Lease()
}

// result is an outcome with a canary in each part.
func result(n int) store.Outcome {
	return store.Outcome{Code: 201, Codec: "json", Body: fmt.Appendf(nil, "%s %d", canary, n), Header: []store.Header{{Name: "X-Receipt", Value: canary}}}
}

// complete claims a key and completes it.
func complete(t testing.TB, st store.Store, k store.Key, o store.Owner, state store.State) store.Settlement {
	t.Helper()
	s := store.Settlement{State: state, Attempt: 1, Outcome: result(int(o[0])), Error: canary, Keep: time.Hour}
	if err := st.Settle(t.Context(), claim(t, st, k, o), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func journalOf(t testing.TB, st store.Store) store.Journal {
	t.Helper()
	j, ok := store.As[store.Journal](st)
	if !ok {
		t.Fatal("the store keeps no steps")
	}
	return j
}

// wantRefused fails unless err says that the record exists and cannot be read, and shows
// neither the result nor the key.
func wantRefused(t *testing.T, what string, err error, k store.Key) {
	t.Helper()
	switch {
	case !errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrNotFound) || store.Affects(err) != store.ExtentCall:
		t.Errorf("%s: error %v, want one that wraps store.ErrCorrupt alone", what, err)
	case !strings.Contains(err.Error(), k.Short()) || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), k.Value):
		t.Errorf("%s: the error %q must name the hash of the key, and neither the key nor the result", what, err)
	}
}

// stored is all that a store has of a record and its steps, as text.
func stored(r *store.Record, steps []store.Step) string {
	text := fmt.Sprintf("%+v %s %+v", r, r.Outcome.Body, steps) // %+v shows bytes as numbers
	for i := range steps {
		text += string(steps[i].Outcome.Body)
	}
	return text
}
