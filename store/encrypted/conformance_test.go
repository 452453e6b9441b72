package encrypted_test

import (
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/storetest"
)

// clocked is a memory store whose clock stands still unless it is advanced.
type clocked struct {
	*memstore.Store
	mu  sync.Mutex
	now time.Time

	keys *ring // of the Ciphers that encrypt it
}

func newClocked() *clocked {
	c := &clocked{keys: newRing("new", "old"), now: time.Date(2026, 11, 20, 12, 0, 0, 123_456_789, time.UTC)}
	c.Store = memstore.New(&memstore.Options{Now: func() time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.now
	}})
	return c
}

// advance moves the clock of the memory store below s.
func advance(_ testing.TB, s store.Store, d time.Duration) {
	c, _ := store.As[*clocked](s)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A second handle has a Cipher of its own, as another process has.
func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(testing.TB) store.Store {
			c := newClocked()
			return (&encrypted.Cipher{Keys: c.keys, RequireEncrypted: true}).Store(c)
		},
		Advance: advance,
		Reopen: func(_ testing.TB, s store.Store) store.Store {
			c, _ := store.As[*clocked](s)
			return (&encrypted.Cipher{Keys: c.keys}).Store(c)
		},
		HideOutcomes: func(_ testing.TB, s store.Store) {
			c, _ := store.As[*clocked](s)
			c.keys.set(nil, "another")
		},
		Histories: 100,
	})
}

func TestStore_OptionalInterfaces_AreKept(t *testing.T) {
	c := &encrypted.Cipher{Keys: newRing("new")}
	st := c.Store(memstore.New(nil))
	_, lists := store.As[store.Lister](st)
	_, journals := store.As[store.Journal](st)
	_, hasTimers := store.As[store.Timers](st)
	if !lists || !journals || !hasTimers {
		t.Errorf("List %v, steps %v, timers %v; memstore has all three", lists, journals, hasTimers)
	}
	if c.Store(st) != st {
		t.Error("a store is encrypted twice by the same Cipher")
	}
	type bare struct{ store.Store }
	st = c.Store(bare{memstore.New(nil)})
	_, lists = store.As[store.Lister](st)
	_, journals = store.As[store.Journal](st)
	if lists || journals {
		t.Errorf("List %v, steps %v; the store has neither", lists, journals)
	}
	if in := memstore.New(nil); (*encrypted.Cipher)(nil).Store(in) != store.Store(in) {
		t.Error("a nil Cipher changes the store")
	}
}
