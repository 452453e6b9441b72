package consume_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestHandle_MaxDeliveries_DeadLetters(t *testing.T) {
	c := newConsumer(t, newGuard(t, nil, nil), fails, consume.Options{MaxDeliveries: 3})
	m := keyed("k")
	for m.Deliveries = 100; m.Deliveries < 103; m.Deliveries++ { // 99 times it only waited
		if d := c.Handle(t.Context(), m); d.Action != driver.Retry {
			t.Errorf("delivery %d: %v for %q", m.Deliveries, d.Action, d.Reason)
		}
	}
	for range 2 { // the second time from the record
		d := c.Handle(t.Context(), m)
		if d.Action != driver.DeadLetter || d.Reason != driver.ReasonDeliveries && d.Reason != driver.ReasonExhausted || d.Err == nil {
			t.Errorf("after 3 runs: %v for %q: %v", d.Action, d.Reason, d.Err)
		}
	}
	few := keyed("few")
	for few.Deliveries = 1; few.Deliveries <= 3; few.Deliveries++ {
		if d := c.Handle(t.Context(), few); d.Action != driver.Retry {
			t.Errorf("delivery %d of few: %v for %q", few.Deliveries, d.Action, d.Reason)
		}
	}
}

// amnesiac is a runner that forgets the attempts of a process that died, as an
// Atomic does.
type amnesiac struct{ t testing.TB }

func (f amnesiac) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	return newGuard(f.t, nil, nil).Run(ctx, call, fn)
}

// A message that waited through many restarts runs. One that kills its process
// each time is dead-lettered, although its runner forgets that.
func TestHandle_ProcessDies_CountsStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		begun, dies, end := 0, true, make(chan struct{})
		h := func(context.Context, *semel.Execution, *consume.Message) error {
			if begun++; dies {
				<-end
			}
			return nil
		}
		newOne := func(st store.Store) *consume.Consumer {
			return newConsumer(t, amnesiac{t}, h, consume.Options{MaxDeliveries: 3, Starts: newGuard(t, st, &semel.Options{Lease: time.Second})})
		}
		m := keyed("k")
		m.Deliveries = 50
		for n := range 3 {
			dying := &mortal{Store: st}
			go newOne(dying).Handle(context.Background(), m)
			pass(time.Minute)
			dying.dead.Store(true)
			pass(time.Minute)
			if begun != n+1 {
				t.Fatalf("the handler began %d times, want %d", begun, n+1)
			}
		}
		dies = false
		defer pass(time.Hour)
		defer close(end)
		if d := newOne(st).Handle(t.Context(), m); d.Action != driver.DeadLetter || d.Reason != driver.ReasonDeliveries {
			t.Errorf("after 3 deaths: %v for %q: %v", d.Action, d.Reason, d.Err)
		}
		waited := keyed("waited")
		waited.Deliveries = 50
		if d := newOne(st).Handle(t.Context(), waited); d.Reason != driver.ReasonDone || begun != 4 {
			t.Errorf("one that only waited: %q: %v", d.Reason, d.Err)
		}
	})
}

// A message that fails at each delivery is dead-lettered, although its runner forgets
// the attempts, as sqlitestore's Atomic does.
func TestHandle_FailsAtEachDelivery_CountsStarts(t *testing.T) {
	begun := 0
	h := func(context.Context, *semel.Execution, *consume.Message) error {
		begun++
		return errors.New("no such table")
	}
	c := newConsumer(t, amnesiac{t}, h, consume.Options{MaxDeliveries: 3, Starts: newGuard(t, memstore.New(nil), nil)})
	m := keyed("k")
	for m.Deliveries = 4; m.Deliveries < 7; m.Deliveries++ {
		if d := c.Handle(t.Context(), m); d.Action != driver.Retry {
			t.Errorf("delivery %d: %v for %q", m.Deliveries, d.Action, d.Reason)
		}
	}
	if d := c.Handle(t.Context(), m); d.Action != driver.DeadLetter || d.Reason != driver.ReasonDeliveries || begun != 3 {
		t.Errorf("after 3 failures: %v for %q: %v; begun %d times", d.Action, d.Reason, d.Err, begun)
	}
}

// Under Unprotected each delivery has a new key, so each is the first attempt. If the
// message kills its process each time, only the broker's count can end it.
func TestHandle_UnprotectedBeyondMaxDeliveries_DeadLetters(t *testing.T) {
	for name, o := range map[string]*consume.Options{
		"counted by the runner": {MaxDeliveries: 3},
		"counted by Starts":     {MaxDeliveries: 3, Starts: newGuard(t, nil, nil)},
	} {
		begun := 0
		h := func(context.Context, *semel.Execution, *consume.Message) error {
			begun++
			return nil
		}
		c, err := consume.New(newGuard(t, nil, nil), consume.Keyed("test", consume.FromHeader(consume.KeyHeader), consume.Unprotected()), h, o)
		if err != nil {
			t.Fatal(err)
		}
		m := &consume.Message{Body: []byte("b"), Deliveries: 3}
		if d := c.Handle(t.Context(), m); d.Action != driver.Ack || begun != 1 {
			t.Errorf("%s: delivery 3: %v for %q, begun %d times", name, d.Action, d.Reason, begun)
		}
		m.Deliveries = 4
		if d := c.Handle(t.Context(), m); d.Action != driver.DeadLetter || d.Reason != driver.ReasonDeliveries || d.Err == nil || begun != 1 {
			t.Errorf("%s: delivery 4: %v for %q: %v; begun %d times", name, d.Action, d.Reason, d.Err, begun)
		}
		k := keyed("k")
		k.Deliveries = 50 // it only waited
		if d := c.Handle(t.Context(), k); d.Reason != driver.ReasonDone {
			t.Errorf("%s: a message with a key: %v for %q: %v", name, d.Action, d.Reason, d.Err)
		}
	}
}

func TestNew_MaxDeliveriesWithoutStarts_IsRefused(t *testing.T) {
	if _, err := consume.New(amnesiac{t}, byHeader, done, &consume.Options{MaxDeliveries: 3, Retention: time.Hour}); err == nil || !strings.Contains(err.Error(), "Starts") {
		t.Errorf("New: %v", err)
	}
}

// mortal is the store of a process that dies: then no call of it has an effect.
type mortal struct {
	store.Store
	dead atomic.Bool
}

func (m *mortal) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if m.dead.Load() {
		return nil, errDown
	}
	return m.Store.Renew(ctx, held, d)
}

func (m *mortal) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if m.dead.Load() {
		return errDown
	}
	return m.Store.Settle(ctx, l, s)
}
