package semelamqp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// journal is what the handlers and the consumers of a test did.
type journal struct {
	mu     sync.Mutex
	runs   map[string]int
	order  []string
	events []consume.Event
}

func (j *journal) ran(m *consume.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.runs == nil {
		j.runs = map[string]int{}
	}
	j.runs[m.Key]++
	j.order = append(j.order, m.Key)
}

func (j *journal) total() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.runs {
		n += r
	}
	return n
}

func (j *journal) observe(_ context.Context, e consume.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

// saw counts the events of a kind for which is holds.
func (j *journal) saw(kind consume.Kind, is func(e consume.Event) bool) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.events {
		if j.events[i].Kind == kind && (is == nil || is(j.events[i])) {
			n++
		}
	}
	return n
}

// errors returns the errors of the events.
func (j *journal) errors() (errs []error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.events {
		if j.events[i].Err != nil {
			errs = append(errs, j.events[i].Err)
		}
	}
	return errs
}

// once checks that n messages k0, k1 … ran once each.
func (j *journal) once(t *testing.T, n int) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range n {
		if r := j.runs[fmt.Sprint("k", i)]; r != 1 {
			t.Errorf("message k%d ran %d times", i, r)
		}
	}
}

// plain is a handler that has its effect.
func (j *journal) plain(_ context.Context, _ *semel.Execution, m *consume.Message) error {
	j.ran(m)
	return nil
}

// consumer is one over a new store.
func (j *journal) consumer(t testing.TB, h consume.Handler, o consume.Options) *consume.Consumer {
	t.Helper()
	g, err := semel.New(memstore.New(nil), &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		t.Fatal(err)
	}
	o.AllowShortRetention, o.Observe = true, j.observe
	c, err := consume.New(g, consume.Keyed("test", consume.FromHeader(consume.KeyHeader), consume.CloudEvent()), h, &o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serve serves until the test ends, or the returned function is called.
func serve(t testing.TB, c *consume.Consumer, s driver.Source) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx, s) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

func keyed(key string) consume.Message {
	return consume.Message{Body: []byte("body of " + key), Headers: []store.Header{{Name: consume.KeyHeader, Value: key}}}
}

// many is n messages k0, k1 …
func many(n int) (ms []consume.Message) {
	for i := range n {
		ms = append(ms, keyed(fmt.Sprint("k", i)))
	}
	return ms
}

// next is the next message of a source.
func next(t testing.TB, s driver.Source) driver.Delivery {
	t.Helper()
	var ds []driver.Delivery
	until(t, "a message", func() bool {
		ds, _ = s.Next(t.Context(), 1) // a failure is tried again
		return len(ds) == 1
	})
	return ds[0]
}

// key is the header that keyed sets.
func key(d driver.Delivery) string {
	k, _ := d.Message().Header(consume.KeyHeader)
	return k
}

// settled waits until the broker has nothing left.
func settled(t testing.TB, b *broker) {
	t.Helper()
	until(t, "all messages acked", func() bool { return b.Unsettled(t) == 0 })
}

func reasons(t testing.TB, b *broker, to driver.Action) (rs []string) {
	t.Helper()
	for _, m := range b.Copies(t, to) {
		r, _ := m.Header(driver.LetterReason)
		rs = append(rs, r)
	}
	slices.Sort(rs)
	return rs
}

func errIs(target error) func(e consume.Event) bool {
	return func(e consume.Event) bool { return errors.Is(e.Err, target) }
}
