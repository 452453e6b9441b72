package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// leap is how far the server's clock is set forward and back: far past a
// lease, and far short of a retention.
const leap = 5 * time.Minute

// runs holds the handler runs of a key, and the answers to its callers.
type runs struct {
	fences  []uint64          // of each run of the handler
	fenceOf map[string]uint64 // of the run that made an outcome
	settled map[string]bool   // the outcomes that callers got
}

// storm runs operations by several Guards, which know nothing of each other,
// while the server's clock jumps.
type storm struct {
	mu      sync.Mutex
	by      map[string]*runs
	zombies atomic.Int64 // runs whose outcome was refused
	renewed atomic.Int64 // runs that took longer than a lease
	waited  atomic.Int64 // calls that got the outcome of another's run
}

// seen reports whether all that is to be tried has come about.
func (st *storm) seen() bool {
	return st.zombies.Load() > 2 && st.renewed.Load() > 2 && st.waited.Load() > 2
}

// handle takes up to two leases, so that it has to be renewed, and sometimes
// fails at first.
func (st *storm) handle(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
	st.mu.Lock()
	r := st.by[x.Key()]
	n := len(r.fences)
	r.fences = append(r.fences, x.Fence())
	body := fmt.Sprint(x.Key(), " by run ", n)
	r.fenceOf[body] = x.Fence()
	st.mu.Unlock()
	took := time.Duration(rand.N(int64(2 * stormLease)))
	select {
	case <-ctx.Done():
		return store.Outcome{}, context.Cause(ctx)
	case <-time.After(took):
	}
	if took > stormLease {
		st.renewed.Add(1)
	}
	if n == 0 && rand.N(5) == 0 {
		return store.Outcome{}, errors.New("the first attempt fails")
	}
	return store.Outcome{Code: 200, Body: []byte(body)}, nil
}

const stormLease = 400 * time.Millisecond

// call asks for a key until it has an outcome.
func (st *storm) call(ctx context.Context, g *semel.Guard, key string) error {
	for ctx.Err() == nil {
		call := semel.Call{Operation: "charge", Tenant: semel.Shared, Key: key, Payload: semel.NoPayload()}
		call.Wait = 2 * stormLease // a record may be held for as long as the clock was set back
		res, err := g.Run(ctx, call, st.handle)
		st.mu.Lock()
		r := st.by[key]
		switch {
		case err == nil:
			r.settled[string(res.Body)] = true
			if res.Replayed {
				st.waited.Add(1)
			}
		case errors.Is(err, semel.ErrLeaseLost):
			st.zombies.Add(1)
		}
		st.mu.Unlock()
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s got no outcome: %w", key, ctx.Err())
}

// While the clock of the server jumps by minutes, forward and back, claims,
// renewals, settlements and waits go on: each key has one outcome for all, that
// of the run with the highest fence, and no two runs have the same fence.
func TestClock_OfServerJumps_CallsEndOnce(t *testing.T) {
	t.Parallel()
	srv, clock := redistest.StartWithClock(t, redistest.Durable...)
	keys := 60 // at least
	if long() {
		keys = 1000
	}
	st := &storm{by: map[string]*runs{}}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var guards []*semel.Guard
	for range 3 {
		s := openOn(t, clientAt(t, srv.URL()), nil)
		g, err := semel.New(s, &semel.Options{Lease: stormLease})
		if err != nil {
			t.Fatal(err)
		}
		guards = append(guards, g)
	}
	work := make(chan string)
	var callers sync.WaitGroup
	for i := range 24 {
		callers.Go(func() {
			for key := range work {
				var all sync.WaitGroup
				for j := range 3 { // its duplicates, elsewhere
					all.Go(func() {
						if err := st.call(ctx, guards[(i+j)%3], key); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
			}
		})
	}
	ended := make(chan struct{})
	var jumps atomic.Int64
	var jumper sync.WaitGroup
	jumper.Go(func() {
		for at := time.Duration(0); ; jumps.Add(1) {
			select {
			case <-ended:
				return
			case <-time.After(stormLease/3 + rand.N(stormLease)):
			}
			at = []time.Duration{0, leap, -leap, rand.N(2*leap) - leap}[rand.N(4)]
			if err := clock.Set(at); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := 0; i < keys || !st.seen() || jumps.Load() < 10; i++ {
		if ctx.Err() != nil {
			t.Fatalf("%d jumps, %d zombies, %d long runs, %d waits: the harness is blind", jumps.Load(), st.zombies.Load(), st.renewed.Load(), st.waited.Load())
		}
		key := fmt.Sprint("key ", i)
		st.mu.Lock()
		st.by[key] = &runs{settled: map[string]bool{}, fenceOf: map[string]uint64{}}
		st.mu.Unlock()
		work <- key
	}
	close(work)
	callers.Wait()
	close(ended)
	jumper.Wait()
	st.judge(t, openOn(t, clientAt(t, srv.URL()), nil), jumps.Load())
}

func (st *storm) judge(t *testing.T, s *Store, jumps int64) {
	again, wrong := 0, int64(0)
	bad := func(format string, args ...any) {
		t.Helper()
		wrong++
		t.Errorf(format, args...)
	}
	for key, r := range st.by {
		again += len(r.fences) - 1
		f, err := s.Get(t.Context(), store.Key{Operation: "charge", Value: key})
		if err != nil {
			bad("%s: %v", key, err)
			continue
		}
		body := string(f.Record.Outcome.Body)
		if f.Record.State != store.Completed || len(r.settled) != 1 || !r.settled[body] {
			bad("%s is %v with %q, and callers got %v", key, f.Record.State, body, r.settled)
		}
		highest := slices.Max(r.fences)
		if r.fenceOf[body] != highest || f.Record.Fence != highest {
			bad("%s: the outcome is of the run with fence %d, the record has %d, and the runs had %d", key, r.fenceOf[body], f.Record.Fence, r.fences)
		}
		if slices.Sort(r.fences); len(slices.Compact(r.fences)) != len(r.fenceOf) {
			bad("%s: two runs had one fence: %d", key, r.fences)
		}
	}
	figure(t, "while the server's clock jumps by minutes each key has one outcome, that of its highest fence", false, int64(len(st.by)), wrong,
		fmt.Sprintf("%d jumps; %d further runs, %d of them refused; %d runs longer than a lease; %d waited for an outcome", jumps, again, st.zombies.Load(), st.renewed.Load(), st.waited.Load()))
}
