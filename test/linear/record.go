package linear

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
)

// Options configure a history. Zero fields mean the defaults.
type Options struct {
	Seed    uint64
	Clients int     // at once: 6 by default
	Ops     int     // that each makes: 40 by default
	Keys    int     // that they share: 2 by default
	Cached  bool    // the store is a cache, whose Claims may show terminal records with times of its own
	Sharded bool    // the store asks several stores, one after the other
	Faults  float64 // odds that a call is lost, late or doubled
}

// Record makes a history of a store. No other test may use the store at the same
// time, because a sweep reads all records. The seed chooses the operations of the
// clients, but not their order. Record returns when all calls have returned, also
// the late ones.
func Record(ctx context.Context, st store.Store, o Options) *History {
	setDefault(&o.Clients, 6)
	setDefault(&o.Ops, 40)
	setDefault(&o.Keys, 2)
	s := &session{h: &History{}, o: o}
	var wg sync.WaitGroup
	for i := range o.Clients {
		c := newClient(s, st, i)
		wg.Go(func() {
			for range o.Ops {
				c.move(ctx)
			}
			c.deliver(ctx)
		})
	}
	wg.Wait()
	return s.h
}

func setDefault(v *int, d int) {
	if *v == 0 {
		*v = d
	}
}

// session is the state that the clients of a history share.
type session struct {
	o Options

	mu   sync.Mutex // guards what follows
	h    *History
	seen []store.Record // the records that the clients have read last

	versions []store.Owner // that timers had
}

// client makes calls, one after the other.
type client struct {
	s     *session
	id    int
	rng   *rand.Rand
	fault *storetest.Fault
	mode  storetest.Mode // of the last call
	late  []func() error // calls of optional interfaces that are under way

	journal store.Journal // nil: the store has none
	timers  store.Timers
}

func newClient(s *session, st store.Store, id int) *client {
	c := &client{s: s, id: id, rng: rand.New(rand.NewPCG(s.o.Seed, uint64(id)))}
	c.journal, _ = store.As[store.Journal](st)
	c.timers, _ = store.As[store.Timers](st)
	c.fault = storetest.NewFault(st, func(storetest.Op, int) storetest.Mode { return c.choose() })
	return c
}

// choose chooses the fault of the next call.
func (c *client) choose() storetest.Mode {
	modes := []storetest.Mode{storetest.Before, storetest.LostReply, storetest.Twice, storetest.Late}
	c.mode = storetest.None
	if c.rng.Float64() < c.s.o.Faults {
		c.mode = modes[c.rng.IntN(len(modes))]
	}
	return c.mode
}

// sent makes a call of an optional interface, with the faults of storetest.Fault.
func (c *client) sent(send func() error) error {
	switch c.choose() {
	case storetest.Before:
		return storetest.ErrInjected
	case storetest.LostReply:
		_ = send()
		return storetest.ErrInjected
	case storetest.Late:
		c.late = append(c.late, send)
		return storetest.ErrInjected
	case storetest.Twice:
		_ = send()
	}
	return send()
}

// deliver lets the calls arrive that are under way.
func (c *client) deliver(ctx context.Context) {
	c.fault.Deliver(ctx)
	for _, send := range c.late {
		_ = send()
	}
	c.late = nil
}

// move makes one call, of a kind that fits what was seen lately.
func (c *client) move(ctx context.Context) {
	if c.rng.IntN(6) == 0 {
		c.deliver(ctx)
	}
	rec, ok := c.recent()
	most := 100
	if c.journal != nil && c.timers != nil {
		most = 130
	}
	switch n := c.rng.IntN(most); {
	case n >= 115:
		c.moveTimer(ctx, c.timers)
	case n >= 100 && ok:
		c.recordSteps(ctx, c.journal, &rec)
	case !ok || n < 25:
		in := &Input{Kind: Claim, Key: c.key(), Cached: c.s.o.Cached}
		in.Proposal = c.proposal(in.Key, store.Processing)
		c.call(in, func(a *Answer) (err error) { a.Found, err = c.fault.Claim(ctx, in.Proposal); return err })
	case n < 50:
		in := &Input{Kind: Swap, Key: rec.Key, Seen: rec.Seen(), Proposal: c.proposal(rec.Key, states[c.rng.IntN(len(states))])}
		in.Proposal.Restart = c.rng.IntN(4) == 0
		c.call(in, func(a *Answer) (err error) { a.Found, err = c.fault.Swap(ctx, in.Seen, in.Proposal); return err })
	case n < 60:
		in := &Input{Kind: Renew, Key: rec.Key, Lease: rec.Lease(), For: c.span()}
		c.call(in, func(*Answer) error {
			errs, err := c.fault.Renew(ctx, []store.Lease{in.Lease}, in.For)
			return errors.Join(append(errs, err)...)
		})
	case n < 78:
		in := &Input{Kind: Settle, Key: rec.Key, Lease: rec.Lease(), Settlement: c.settlement(&rec)}
		c.call(in, func(*Answer) error { return c.fault.Settle(ctx, in.Lease, in.Settlement) })
	case n < 94:
		in := &Input{Kind: Get, Key: c.key()}
		c.call(in, func(a *Answer) (err error) { a.Found, err = c.fault.Get(ctx, in.Key); return err })
	default:
		c.sweep(ctx)
	}
}

// call makes a call and writes it down: as one that is answered, as one of
// which nobody knows, or as both, if it was sent twice.
func (c *client) call(in *Input, send func(*Answer) error) {
	s := c.s
	s.mu.Lock()
	at := s.h.Tick()
	s.mu.Unlock()
	a := &Answer{}
	a.Err = send(a)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.mode == storetest.Before {
		return
	}
	if c.mode == storetest.Twice && !in.Kind.reads() {
		s.h.Call(c.id, at, in)
	}
	n := s.h.Call(c.id, at, in)
	if a.Err == nil || errors.Is(a.Err, store.ErrNotFound) || errors.Is(a.Err, store.ErrLeaseLost) || errors.Is(a.Err, store.ErrChanged) {
		s.h.Return(n, s.h.Tick(), a)
		if a.Err == nil && a.Found.Record.State.Valid() {
			s.remember(a.Found.Record)
		}
	}
}

// sweep is an operation on each key.
func (c *client) sweep(ctx context.Context) {
	s := c.s
	s.mu.Lock()
	at := s.h.Tick()
	s.mu.Unlock()
	res, err := c.fault.Sweep(ctx, "", 1000)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.mode == storetest.Before {
		return
	}
	back := s.h.Tick()
	for i := range s.o.Keys {
		in := &Input{Kind: Sweep, Key: s.key(i)}
		if c.mode == storetest.Twice {
			s.h.Call(c.id, at, in)
		}
		n := s.h.Call(c.id, at, in)
		if err != nil {
			continue
		}
		s.h.Return(n, back, &Answer{Now: res.Now})
		for _, r := range res.Lapsed {
			if r.Key == in.Key { // read at one moment, and perhaps removed at a later one, when it had expired
				s.h.Return(s.h.Call(c.id, at, in), back, &Answer{Now: res.Now, Lapsed: true, Found: store.Found{Record: r}})
				s.remember(r)
			}
		}
	}
}

// remember keeps what was read. The caller holds mu.
func (s *session) remember(r store.Record) {
	const lately = 8
	if s.seen = append(s.seen, r); len(s.seen) > lately {
		s.seen = s.seen[1:]
	}
}

// recent is one of the records that were read lately, most likely the last.
func (c *client) recent() (store.Record, bool) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	seen := c.s.seen
	if len(seen) == 0 {
		return store.Record{}, false
	}
	i := len(seen) - 1
	if c.rng.IntN(3) == 0 {
		i = c.rng.IntN(len(seen))
	}
	return seen[i], true
}

func (s *session) key(i int) store.Key {
	return store.Key{Operation: "linear", Value: strconv.Itoa(i)}
}

func (c *client) key() store.Key { return c.s.key(c.rng.IntN(c.s.o.Keys)) }

var states = []store.State{
	store.Processing, store.Processing, store.Processing, store.Started, store.Released, store.Completed, store.Failed, store.Unknown,
}

// span is a time that is over at once, or soon, or not before the end.
func (c *client) span() time.Duration {
	return []time.Duration{time.Microsecond, 300 * time.Microsecond, time.Hour}[c.rng.IntN(3)]
}

func (c *client) proposal(k store.Key, s store.State) store.Proposal {
	p := store.Proposal{
		Key: k, State: s, Policy: store.Policy(c.rng.IntN(2)), Holder: strconv.Itoa(c.id), Attempt: c.rng.IntN(4), Lease: c.span(), Keep: c.span(),
		Fingerprint: store.Fingerprint{Alg: "a", Sum: strconv.Itoa(c.rng.IntN(2))},
	}
	for i := range p.Owner {
		p.Owner[i] = byte(c.rng.Uint32())
	}
	if s.Terminal() {
		p.Outcome = c.outcome()
	}
	if s == store.Released {
		p.Lease = 0
	}
	return p
}

func (c *client) settlement(r *store.Record) store.Settlement {
	s := store.Settlement{State: states[4+c.rng.IntN(4)], Attempt: r.Attempt, Keep: c.span()}
	if s.State.Terminal() {
		s.Outcome = c.outcome()
	} else {
		s.Error = "e" + strconv.Itoa(c.rng.IntN(3))
	}
	return s
}

func (c *client) outcome() store.Outcome {
	return store.Outcome{Code: c.rng.IntN(3), Body: []byte(strconv.Itoa(c.rng.IntN(1000)))}
}
