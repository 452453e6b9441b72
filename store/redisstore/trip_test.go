package redisstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// trips counts the round trips of a client, and the commands in them.
type trips struct{ trips, commands atomic.Int64 }

func (c *trips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(cmds...)
		return next(ctx, cmds)
	}
}

func (c *trips) count(cmds ...redis.Cmder) {
	if !strings.HasPrefix(cmds[0].Name(), "eval") {
		return // the first commands of a connection
	}
	c.trips.Add(1)
	c.commands.Add(int64(len(cmds)))
}

// during is how many round trips fn takes.
func (c *trips) during(fn func()) int64 {
	before := c.trips.Load()
	fn()
	return c.trips.Load() - before
}

func TestRoundTrips_NewTakesTwo_ReplayTakesOne(t *testing.T) {
	s := openNew(t, nil)
	complete(t, s, "first", "x") // the server has the scripts now, and was looked at
	var c trips
	s.client.AddHook(&c)
	g, err := semel.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func() {
		_, err := g.Run(t.Context(), semel.Call{Operation: "pay", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}, func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{Code: 200, Body: []byte("done")}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := c.during(run); n != 2 {
		t.Errorf("a new operation took %d round trips, want 2", n)
	}
	for range 3 {
		if n := c.during(run); n != 1 {
			t.Errorf("a replay took %d round trips, want 1", n)
		}
	}
	if c.commands.Load() != c.trips.Load() {
		t.Errorf("%d commands in %d round trips", c.commands.Load(), c.trips.Load())
	}
}

func TestRoundTrips_EachMethod_TakesOne(t *testing.T) {
	s := openNew(t, nil)
	var c trips
	for round := range 2 { // in the first the server gets the scripts
		if round == 1 {
			s.client.AddHook(&c)
		}
		name := string(rune('a' + round))
		var r store.Record
		var leases []store.Lease
		for what, fn := range map[string]func() error{
			"Claim": func() error {
				r = claim(t, s, "claim "+name)
				return nil
			},
			"Get": func() error { _, err := s.Get(t.Context(), testKey("claim")); return ignoreAbsent(err) },
			"Swap and Settle, together two": func() error {
				old := claim(t, s, "swap "+name)
				f, err := s.Swap(t.Context(), old.Seen(), proposal("swap "+name))
				if err != nil || !f.Won {
					t.Errorf("won %v, error %v", f.Won, err)
				}
				return s.Settle(t.Context(), f.Record.Lease(), completion("x"))
			},
			"Renew": func() error {
				leases = leases[:0]
				for i := range 50 {
					leases = append(leases, store.Lease{Key: testKey(string(rune('A' + i)))})
				}
				_, err := s.Renew(t.Context(), leases, time.Minute)
				return err
			},
		} {
			n := c.during(func() {
				if err := fn(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
			want := int64(1)
			if strings.HasPrefix(what, "Swap") {
				want = 3 // with the claim before
			}
			if round == 1 && n != want {
				t.Errorf("%s took %d round trips, want %d", what, n, want)
			}
		}
		if r.State != store.Processing {
			t.Errorf("the claim is %v", r.State)
		}
	}
}

func ignoreAbsent(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// Calls that arrive while a round trip is in flight share the next one.
func TestRoundTrips_ConcurrentCalls_ShareOne(t *testing.T) {
	s := openNew(t, &Options{Flushers: 1})
	complete(t, s, "first", "x")
	const n = 200
	gate := &gateHook{open: make(chan struct{})}
	var c trips
	s.client.AddHook(gate)
	s.client.AddHook(&c)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { claim(t, s, "many "+string(rune('0'+i))) })
	}
	waitFor(t, "all but the first are queued", func() bool { return s.changes.queued() == n-1 })
	close(gate.open)
	all.Wait()
	if got := c.trips.Load(); got != 2 {
		t.Errorf("%d claims took %d round trips, want 2", n, got)
	}
}

// The largest batch is one script; a larger number, or more bytes than one
// script should move, is several in one round trip.
func TestBatch_Large_IsAnswered(t *testing.T) {
	s := openNew(t, &Options{MaxBatch: 2000})
	for name, c := range map[string]struct{ n, bytes, commands int }{
		"the most": {2000, 10, 1}, "one more": {2001, 10, 2}, "large answers": {30, 100_000, 3},
	} {
		calls := make([]*call, c.n)
		for i := range calls {
			p := proposal(name + itoa(i))
			p.Error = strings.Repeat("x", c.bytes)
			var err error
			if calls[i], err = s.claimCall(&p); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(s.pack(calls)); got != c.commands {
			t.Errorf("%s: %d scripts, want %d", name, got, c.commands)
		}
		s.send(t.Context(), calls)
		for _, c := range calls {
			if _, won := c.val.(int64); c.err != nil || !won {
				t.Fatalf("%s: %v, error %v", name, c.val, c.err)
			}
		}
	}
}

// Calls share a script only if they have the same state change, which is sent once, and
// each call keeps its own.
func TestBatch_DifferentTerms_EachCallKeepsItsOwn(t *testing.T) {
	s := openNew(t, nil)
	ps, calls := make([]store.Proposal, 60), make([]*call, 60)
	for i := range ps {
		ps[i] = proposal("terms" + itoa(i))
		ps[i].Lease, ps[i].Attempt = time.Duration(1+i%30)*time.Minute, 1+i%30/15
		var err error
		if calls[i], err = s.claimCall(&ps[i]); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(s.pack(calls[:2])); got != 2 {
		t.Errorf("two leases are %d scripts, want 2", got)
	}
	if got := len(s.pack([]*call{calls[0], calls[1], calls[30], calls[31]})); got != 2 {
		t.Errorf("two leases, twice, are %d scripts, want 2", got)
	}
	s.send(t.Context(), calls)
	for i := range ps {
		r := get(t, s, ps[i].Key.Value)
		if r.Owner != ps[i].Owner || r.Until.Sub(r.Created) != ps[i].Lease || r.Attempt != ps[i].Attempt {
			t.Errorf("lease %v, attempt %d, want %v, %d", r.Until.Sub(r.Created), r.Attempt, ps[i].Lease, ps[i].Attempt)
		}
	}
}

// In one batch each claim and settlement gets its own answer, whether it equals the
// answer of all others, which is sent once, or not.
func TestBatch_DifferentAnswers_EachCallGetsItsOwn(t *testing.T) {
	s := openNew(t, nil)
	for _, taken := range []int{0, 1, 3} { // of four
		for i := range taken {
			complete(t, s, itoa(taken)+"/"+itoa(i), "x")
		}
		calls, settles := make([]*call, 4), []*call{}
		for i := range calls {
			p := proposal(itoa(taken) + "/" + itoa(i))
			calls[i], _ = s.claimCall(&p)
		}
		s.send(t.Context(), calls)
		for i, c := range calls {
			fence, won := c.val.(int64)
			if c.err != nil || won != (i >= taken) {
				t.Errorf("%d of 4 are taken, claim %d: %v, error %v", taken, i, c.val, c.err)
			}
			l := store.Lease{Key: testKey(itoa(taken) + "/" + itoa(i)), Owner: store.Owner(c.args[0][1:]), Fence: uint64(fence)}
			end := completion("y")
			settle, _ := s.settleCall(&l, &end)
			settles = append(settles, settle)
		}
		s.send(t.Context(), settles)
		for i, c := range settles {
			if done := c.val == int64(1); c.err != nil || done != (i >= taken) {
				t.Errorf("%d of 4 are taken, settlement %d: %v, error %v", taken, i, c.val, c.err)
			}
		}
	}
}

// gateHook holds commands up until it is opened.
type gateHook struct{ open chan struct{} }

func (g *gateHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gateHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		<-g.open
		return next(ctx, cmd)
	}
}

func (g *gateHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		<-g.open
		return next(ctx, cmds)
	}
}
