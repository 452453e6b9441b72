package consumetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// defect is what is wrong with an adapter; nil: nothing.
type defect func(*queueDelivery) driver.Delivery

func (d defect) deliver(to *queueDelivery) driver.Delivery {
	if d == nil {
		return to
	}
	return d(to)
}

// broken is a delivery of an adapter that does one thing wrong. A nil function
// is right.
type broken struct {
	*queueDelivery
	ack     func(ctx context.Context) error
	nak     func(ctx context.Context, delay time.Duration) error
	extend  func(ctx context.Context) error
	forward func(ctx context.Context, to driver.Action, headers []store.Header) error
}

func (d *broken) Ack(ctx context.Context) error {
	if d.ack != nil {
		return d.ack(ctx)
	}
	return d.queueDelivery.Ack(ctx)
}

func (d *broken) Nak(ctx context.Context, delay time.Duration) error {
	if d.nak != nil {
		return d.nak(ctx, delay)
	}
	return d.queueDelivery.Nak(ctx, delay)
}

func (d *broken) Extend(ctx context.Context) error {
	if d.extend != nil {
		return d.extend(ctx)
	}
	return d.queueDelivery.Extend(ctx)
}

func (d *broken) Forward(ctx context.Context, to driver.Action, headers []store.Header) error {
	if d.forward != nil {
		return d.forward(ctx, to, headers)
	}
	return d.queueDelivery.Forward(ctx, to, headers)
}

func nothing(context.Context) error { return nil }

// ackNow acks in a goroutine, because the caller of deliver holds the lock.
func ackNow(d *queueDelivery) { d.m.acked = true }

// defects are broken adapters, each with the checks of which each finds it.
var defects = []struct {
	name   string
	defect defect
	caught []string
}{
	{"acks before running", func(d *queueDelivery) driver.Delivery {
		ackNow(d)
		return &broken{queueDelivery: d, ack: nothing}
	}, []string{"a crash before the effect", "in flight elsewhere is held, and acked when done", "the store is down at the start"}},
	{"acks on error", func(d *queueDelivery) driver.Delivery {
		return &broken{queueDelivery: d, nak: func(ctx context.Context, _ time.Duration) error { return d.Ack(ctx) }}
	}, []string{"a failed message goes back to the broker", "shutdown gives back what waits"}},
	{"loses on shutdown", func(d *queueDelivery) driver.Delivery {
		return &broken{queueDelivery: d, nak: func(ctx context.Context, delay time.Duration) error {
			if delay == 0 {
				return d.Ack(ctx)
			}
			return d.Nak(ctx, delay)
		}}
	}, []string{"shutdown gives back what waits", "no key can stop the consumer"}},
	{"drops order", func(d *queueDelivery) driver.Delivery {
		d.own.OrderKey = ""
		return d
	}, []string{"order per key", "order per key over retries"}},
	{"dead-letters without origin", func(d *queueDelivery) driver.Delivery {
		return &broken{queueDelivery: d, forward: func(ctx context.Context, to driver.Action, headers []store.Header) error {
			var some []store.Header
			for _, h := range headers {
				if !strings.HasPrefix(h.Name, driver.LetterTopic) {
					some = append(some, h)
				}
			}
			return d.Forward(ctx, to, some)
		}}
	}, []string{"a dead letter says where it came from"}},
	{"dead-letters without the fence", func(d *queueDelivery) driver.Delivery {
		return &broken{queueDelivery: d, forward: func(ctx context.Context, to driver.Action, headers []store.Header) error {
			return d.Forward(ctx, to, slices.DeleteFunc(slices.Clone(headers), func(h store.Header) bool { return h.Name == driver.LetterFence }))
		}}
	}, []string{"a redriven dead letter runs again once"}},
	{"dead-letters nothing", func(d *queueDelivery) driver.Delivery {
		return &broken{queueDelivery: d, forward: func(context.Context, driver.Action, []store.Header) error { return nil }}
	}, []string{"poison ends in the dead letters", "a failure is a dead letter", "another payload is a dead letter", "an unknown outcome goes to the quarantine"}},
	{"dead-letters without the message", func(d *queueDelivery) driver.Delivery {
		return &broken{queueDelivery: d, forward: func(ctx context.Context, to driver.Action, headers []store.Header) error {
			own := *d.own
			own.Body = nil
			return (&queueDelivery{c: d.c, m: d.m, own: &own, n: d.n}).Forward(ctx, to, headers)
		}}
	}, []string{"a failure is a dead letter", "a dead letter says where it came from"}},
	{"parks into the dead letters", func(d *queueDelivery) driver.Delivery {
		return &broken{queueDelivery: d, forward: func(ctx context.Context, _ driver.Action, headers []store.Header) error {
			return d.Forward(ctx, driver.DeadLetter, headers)
		}}
	}, []string{"an unknown outcome goes to the quarantine", "a message older than the retention is not run"}},
	{"acks with the copy", func(d *queueDelivery) driver.Delivery {
		acked := false
		return &broken{queueDelivery: d, ack: func(ctx context.Context) error {
			if acked {
				return nil
			}
			return d.Ack(ctx)
		}, forward: func(ctx context.Context, to driver.Action, headers []store.Header) error {
			acked = true
			_ = d.Ack(ctx)
			return d.Forward(ctx, to, nil)
		}}
	}, []string{"a dead letter says where it came from"}},
	{"never acks", func(d *queueDelivery) driver.Delivery {
		return &broken{queueDelivery: d, ack: nothing}
	}, []string{"each message runs once and is acked", "a duplicate in the same batch does not run"}},
	{"does not extend", func(d *queueDelivery) driver.Delivery {
		return &broken{queueDelivery: d, extend: nothing}
	}, []string{"a slow handler keeps its message"}},
	{"loses the headers", func(d *queueDelivery) driver.Delivery {
		d.own.Headers = nil
		return d
	}, []string{"each message runs once and is acked"}},
	{"has no origin", func(d *queueDelivery) driver.Delivery {
		d.own.Origin = consume.Origin{}
		return d
	}, []string{"a dead letter says where it came from"}},
	{"cuts the body", func(d *queueDelivery) driver.Delivery {
		d.own.Body = d.own.Body[:min(len(d.own.Body), 1<<16)]
		return d
	}, []string{"large messages and odd headers"}},
	{"does not say when it was published", func(d *queueDelivery) driver.Delivery {
		d.own.Published = time.Time{}
		return d
	}, []string{"a message older than the retention is not run"}},
}

// All run at once, because most of them wait for events that do not come.
func TestSuite_BrokenAdapter_Fails(t *testing.T) {
	var all sync.WaitGroup
	for _, d := range defects {
		for _, name := range d.caught {
			all.Go(func() {
				failed := runs(t, name, func() Broker {
					q := newQueue()
					q.defect = d.defect
					return q
				})
				if len(failed) == 0 {
					t.Errorf("an adapter that %s passes %q", d.name, name)
				}
			})
		}
	}
	all.Wait()
}

// A committed offset says that all before it is done. This one says it of the
// highest that was acked.
func TestSuite_HighestOffsetCommitted_Fails(t *testing.T) {
	failed := runs(t, "a crash with later messages done", func() Broker {
		b := newPartitions()
		b.highest = true
		return b
	})
	if len(failed) == 0 {
		t.Error("the check passed")
	}
}

// runs runs one check on a broker and returns what it complained of.
func runs(t *testing.T, name string, open func() Broker) []string {
	for _, c := range checks() {
		if c.name == name {
			return complaints(t, func(t testing.TB) {
				c.run(newWorld(t, Harness{Store: inMemory, Open: func(testing.TB) Broker { return open() }, Patience: 10 * time.Second}))
			})
		}
	}
	t.Errorf("there is no check %q", name)
	return nil
}

// complaints runs a test in a goroutine of its own, and returns what it complained of.
func complaints(t *testing.T, test func(testing.TB)) []string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer r.cleanUp()
		test(r)
	}()
	<-done
	return r.said
}

// recorder is a test whose failure is what is wanted.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	said     []string
	cleanups []func()
}

func (r *recorder) Helper()                   {}
func (r *recorder) Logf(string, ...any)       {}
func (r *recorder) Log(...any)                {}
func (r *recorder) Error(a ...any)            { r.say(fmt.Sprint(a...)) }
func (r *recorder) Errorf(f string, a ...any) { r.say(fmt.Sprintf(f, a...)) }

func (r *recorder) Fatal(a ...any) {
	r.say(fmt.Sprint(a...))
	panic(r)
}

func (r *recorder) Fatalf(f string, a ...any) {
	r.say(fmt.Sprintf(f, a...))
	panic(r)
}

func (r *recorder) say(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, what)
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) cleanUp() {
	if v := recover(); v != nil && v != any(r) {
		panic(v)
	}
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.runCleanup(r.cleanups[i])
	}
}

func (r *recorder) runCleanup(f func()) {
	defer func() {
		if v := recover(); v != nil && v != any(r) {
			panic(v)
		}
	}()
	f()
}
