package consumetest

import (
	"context"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
)

// process is a consumer with a life of its own: its connections to the store
// and the broker can be cut.
type process struct {
	w       *world
	store   *flakyStore
	conn    Conn
	source  *flakySource
	guard   *semel.Guard
	stop    context.CancelFunc
	over    <-chan struct{} // closed by stop
	ended   chan struct{}
	err     error // of Serve, when ended is closed
	stopped bool
}

// setup is what differs between the consumers of the tests.
type setup struct {
	handler   consume.Handler
	policy    semel.Policy
	lease     time.Duration
	options   consume.Options
	call      consume.CallFunc
	storeDown bool
	faults    faults
	silent    bool // its events are not kept
}

// quick is a backoff for tests.
func quick(int) time.Duration { return 5 * time.Millisecond }

// start starts a consumer. It ends with the test.
func (w *world) start(s setup) *process {
	w.Helper()
	p := &process{w: w, store: &flakyStore{Store: w.store}, ended: make(chan struct{})}
	p.store.down.Store(s.storeDown)
	if s.lease == 0 {
		s.lease = held
	}
	var err error
	p.guard, err = semel.New(p.store, &semel.Options{
		OnDoubt: s.policy, Lease: s.lease, Retention: consume.DefaultRetention, SettleTimeout: min(s.lease, lease),
	})
	if err != nil {
		w.Fatal(err)
	}
	if s.handler == nil {
		s.handler = w.plain
	}
	if s.call == nil {
		s.call = keyed
	}
	o := s.options
	o.AllowShortRetention = true
	if !s.silent {
		o.Observe = w.observe
	}
	if o.Retention == 0 {
		o.Retention = consume.DefaultRetention
	}
	if o.Backoff == nil {
		o.Backoff = quick
	}
	if o.Concurrency == 0 {
		o.Concurrency = 16
	}
	c, err := consume.New(p.guard, s.call, s.handler, &o)
	if err != nil {
		w.Fatal(err)
	}
	p.conn = w.broker.Connect(w)
	p.source = &flakySource{Source: p.conn, faults: s.faults}
	ctx, stop := context.WithCancel(context.Background())
	p.stop, p.over = stop, ctx.Done()
	w.all = append(w.all, p)
	go func() {
		defer close(p.ended)
		p.err = c.Serve(ctx, p.source)
	}()
	w.Cleanup(p.end)
	return p
}

// keyed compares bodies only, because the suite also makes calls for messages that
// it has not received, and so does not know their address.
var keyed = consume.CallFunc(func(m *consume.Message) (semel.Call, error) {
	key, err := consume.FromHeader(consume.KeyHeader)(m)
	return semel.Call{Operation: group, Tenant: semel.Shared, Key: key, Payload: semel.Bytes(m.Body)}, err
})

// plain is a handler that has its effect.
func (w *world) plain(_ context.Context, x *semel.Execution, m *consume.Message) error {
	w.effect(x, m)
	return nil
}

// supervise looks whether the Serve of a consumer has ended that was not stopped. If a disturbance
// may be the reason, it starts the consumer again, as whoever runs a process does, and returns the
// new one. Otherwise that ends the test.
func (w *world) supervise(p *process, s setup, isDisturbed bool) *process {
	w.Helper()
	select {
	case <-p.ended:
	default:
		return p
	}
	if !isDisturbed {
		w.Fatalf("Serve has ended, although nothing stopped it: %v", p.err)
	}
	w.Logf("Serve has ended, and is started again: %v", p.err)
	_ = p.conn.Close() // the disturbance may have broken it
	p.stopped = true
	return w.start(s)
}

// shutdown ends the consumer in an orderly way.
func (p *process) shutdown() {
	p.w.Helper()
	p.stop()
	select {
	case <-p.ended:
	case <-time.After(p.w.h.Patience):
		p.w.Fatal("Serve did not return when its context ended")
	}
	if p.err != nil {
		p.w.Errorf("Serve: %v", p.err)
	}
	if err := p.conn.Close(); err != nil {
		p.w.Errorf("close: %v", err)
	}
	p.stopped = true
}

// kill ends it as kill -9 would: its later calls reach neither store nor broker.
func (p *process) kill() {
	p.store.down.Store(true)
	p.conn.Kill()
	p.stop()
}

// end is the end of a test.
func (p *process) end() {
	p.stop()
	select {
	case <-p.ended:
	case <-time.After(p.w.h.Patience):
		p.w.Error("Serve did not return at the end of the test")
	}
	if !p.stopped {
		_ = p.conn.Close()
	}
}
