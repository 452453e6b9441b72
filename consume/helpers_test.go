package consume_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

var byHeader = consume.Keyed("test", consume.FromHeader(consume.KeyHeader))

func newGuard(t testing.TB, st store.Store, o *semel.Options) *semel.Guard {
	t.Helper()
	if o == nil {
		o = &semel.Options{}
	}
	if st == nil {
		st = memstore.New(nil)
	}
	o.Retention = consume.DefaultRetention
	g, err := semel.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newConsumer(t testing.TB, g semel.Runner, h consume.Handler, o consume.Options) *consume.Consumer {
	t.Helper()
	if o.Retention == 0 {
		o.Retention = consume.DefaultRetention
	}
	c, err := consume.New(g, byHeader, h, &o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// keyed is a message with a key.
func keyed(key string) *consume.Message {
	return &consume.Message{Body: []byte("b"), Headers: headers(consume.KeyHeader, key)}
}

func ordered(key, order string) *consume.Message {
	m := keyed(key)
	m.OrderKey = order
	return m
}

// source hands out what it is given, and writes down what it is told.
type source struct {
	info driver.Info
	in   chan *consume.Message
	// the errors that the methods return; nil: none
	ack, nak, forward, extend, next func() error

	mu      sync.Mutex
	told    []string // "ack k", "nak k 1s", "dead-letter k"
	stops   int
	at      []time.Time
	nexts   atomic.Int64
	extends int
	letters []consume.Message
	revoked chan struct{}
	// revokedOf are the channels of messages with one of their own, by the key
	revokedOf map[string]chan struct{}
}

func newSource(ms ...*consume.Message) *source {
	s := &source{in: make(chan *consume.Message, 1000), revoked: make(chan struct{})}
	for _, m := range ms {
		s.in <- m
	}
	return s
}

func (s *source) Info(context.Context) (driver.Info, error) { return s.info, nil }

func (s *source) Stop(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops++
	return nil
}

func (s *source) Next(ctx context.Context, limit int) (ds []driver.Delivery, err error) {
	s.nexts.Add(1)
	if s.next != nil {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	select {
	case m := <-s.in:
		ds = append(ds, &delivery{s, m})
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for len(ds) < limit {
		select {
		case m := <-s.in:
			ds = append(ds, &delivery{s, m})
		default:
			return ds, nil
		}
	}
	return ds, nil
}

func (s *source) say(ctx context.Context, err func() error, format string, a ...any) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if err := err(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told, s.at = append(s.told, fmt.Sprintf(format, a...)), append(s.at, time.Now())
	return nil
}

// heard is what the source was told.
func (s *source) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.told...)
}

func (s *source) count(what string) (n int) {
	for _, t := range s.heard() {
		if t == what {
			n++
		}
	}
	return n
}

type delivery struct {
	s *source
	m *consume.Message
}

func (d *delivery) Message() *consume.Message { return d.m }
func (d *delivery) Revoked() <-chan struct{} {
	if own := d.s.revokedOf[d.m.Key]; own != nil {
		return own
	}
	return d.s.revoked
}
func (d *delivery) Ack(ctx context.Context) error { return d.s.say(ctx, d.s.ack, "ack %s", d.m.Key) }
func (d *delivery) Extend(context.Context) error {
	d.s.mu.Lock()
	d.s.extends++
	d.s.mu.Unlock()
	if d.s.extend != nil {
		return d.s.extend()
	}
	return nil
}

func (d *delivery) Nak(ctx context.Context, delay time.Duration) error {
	return d.s.say(ctx, d.s.nak, "nak %s %v", d.m.Key, delay)
}

func (d *delivery) Forward(ctx context.Context, to driver.Action, headers []store.Header) error {
	err := d.s.say(ctx, d.s.forward, "%v %s", to, d.m.Key)
	if err == nil {
		d.s.mu.Lock()
		defer d.s.mu.Unlock()
		m := *d.m
		m.Headers = headers
		d.s.letters = append(d.s.letters, m)
	}
	return err
}

// serving is a Serve that runs in a bubble of synctest.
type serving struct {
	stop context.CancelFunc
	done chan struct{}
	err  error
}

func serve(t testing.TB, c *consume.Consumer, s driver.Source) *serving {
	ctx, cancel := context.WithCancel(t.Context())
	r := &serving{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = c.Serve(ctx, s)
	}()
	return r
}

// end stops it and returns how long that took.
func (r *serving) end() time.Duration {
	began := time.Now()
	r.stop()
	<-r.done
	return time.Since(began)
}

// pass lets time pass in a bubble and waits for the goroutines that it wakes.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// events collects what a Consumer tells.
type events struct {
	mu  sync.Mutex
	all []consume.Event
}

func (e *events) observe(_ context.Context, ev consume.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
}

func (e *events) count(k consume.Kind) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.all {
		if e.all[i].Kind == k {
			n++
		}
	}
	return n
}

// brittle is a store that is down for a while.
type brittle struct {
	store.Store
	mu     sync.Mutex
	down   bool
	claims int
	slow   time.Duration
}

var errDown = errors.New("the store is down")

func (b *brittle) set(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

func (b *brittle) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	b.mu.Lock()
	b.claims++
	down := b.down
	b.mu.Unlock()
	if b.slow > 0 {
		time.Sleep(b.slow) // in a bubble
	}
	if down {
		return store.Found{}, errDown
	}
	return b.Store.Claim(ctx, p)
}

func (b *brittle) Get(ctx context.Context, k store.Key) (store.Found, error) {
	b.mu.Lock()
	down := b.down
	b.mu.Unlock()
	if down {
		return store.Found{}, errDown
	}
	return b.Store.Get(ctx, k)
}

func (b *brittle) claimed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.claims
}

var errPlain = errors.New("plain")
