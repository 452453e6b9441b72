package memstore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/storetest"
)

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// clocked is a memory store whose clock stands still unless it is advanced.
type clocked struct {
	*memstore.Store
	clock *clock
}

func newClocked() *clocked {
	c := newClock()
	return &clocked{memstore.New(&memstore.Options{Now: c.Now}), c}
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 11, 20, 12, 0, 0, 123_456_789, time.Local)}
}

// harness opens stores whose clock a test can set.
var harness = storetest.Harness{
	Open:    func(testing.TB) store.Store { return newClocked() },
	Advance: func(_ testing.TB, s store.Store, d time.Duration) { s.(*clocked).clock.Advance(d) },
	Reopen:  func(_ testing.TB, s store.Store) store.Store { return s },
}

func TestConformance(t *testing.T) { storetest.Run(t, harness) }

func TestConformance_RealTime(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(testing.TB) store.Store { return memstore.New(nil) },
	})
}
