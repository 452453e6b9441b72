package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// lateWorld is a master whose replica freezes again and again, reached through a lateProxy.
type lateWorld struct {
	proxy  *lateProxy
	master *redistest.Server
	stop   chan struct{}
	frozen sync.WaitGroup

	longest time.Duration // that a handler takes

	keys, refused, granted, beside, late, ran, done, parked atomic.Int64

	stuck sync.Once

	mu   sync.Mutex
	ends map[claimOf]time.Time // the earliest end of each lease, by the store's clock
}

// claimOf is a claim of a key, as its handler knows it.
type claimOf struct {
	key   string
	fence uint64
}

// granted is when the store granted the claim, by its clock: the fence says it.
func (c claimOf) granted() time.Time { return store.Time(int64(c.fence)) }

// overlap reports whether the store granted one claim while the lease of the other one excluded
// it. It does not depend on when the handlers begin.
func (w *lateWorld) overlap(c, other claimOf) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return c.granted().Before(w.ends[other]) && other.granted().Before(w.ends[c])
}

// holds notes that the lease of a claim does not end before end.
func (w *lateWorld) holds(key store.Key, fence uint64, end time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := (claimOf{key.Value, fence}); end.After(w.ends[c]) {
		w.ends[c] = end
	}
}

func newLateWorld(t *testing.T) *lateWorld {
	w := &lateWorld{
		master: redistest.Start(t, "--repl-diskless-sync-delay", "0"), stop: make(chan struct{}),
		longest: time.Second, ends: map[claimOf]time.Time{},
	}
	replica := redistest.Start(t, "--replicaof", "127.0.0.1 "+itoa(w.master.Port()))
	c := clientAt(t, w.master.URL())
	waitFor(t, "the replica follows", func() bool {
		n, err := c.Do(t.Context(), "wait", 1, 100).Int()
		return err == nil && n == 1
	})
	w.proxy = newLateProxy(t, w.master.Addr())
	w.frozen.Go(func() {
		defer replica.Thaw()
		for {
			replica.Freeze()
			if !w.pause(40, 300) {
				return
			}
			replica.Thaw()
			before := w.granted.Load()
			for first := true; first || w.granted.Load() == before; first = false { // so that a slow replica acknowledges, too
				if !w.pause(40, 300) {
					return
				}
			}
		}
	})
	t.Cleanup(func() {
		close(w.stop)
		w.frozen.Wait()
	})
	return w
}

// pause waits for a random number of milliseconds. False: the test is over.
func (w *lateWorld) pause(least, most int) bool {
	select {
	case <-time.After(time.Duration(least+rand.IntN(most-least)) * time.Millisecond):
		return true
	case <-w.stop:
		return false
	}
}

// guards are two processes: each has a client of its own and both policies.
func (w *lateWorld) guards(t *testing.T, wrap func(*Store) store.Store) (all [2][2]*semel.Guard) {
	prefix := newPrefix()
	for i := range all {
		c := redis.NewClient(&redis.Options{Addr: w.proxy.addr, ContextTimeoutEnabled: true, ReadTimeout: 600 * time.Millisecond, MaxRetries: -1, DialerRetries: 1})
		t.Cleanup(func() { _ = c.Close() })
		s := openOn(t, c, &Options{Prefix: prefix, Replicas: 1, AckTimeout: 30 * time.Millisecond, AllowPark: true})
		for p := range all[i] {
			g, err := semel.New(witness{wrap(s), w}, &semel.Options{
				OnDoubt: semel.Policy(p), Lease: 6 * time.Second, StoreTimeout: 2 * time.Second, SettleTimeout: 6 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			all[i][p] = g
		}
	}
	return all
}

// begin notes that a handler runs, and counts the handlers of its key that it runs beside. If
// the lease of one of them excluded the other's claim, Semel has broken its promise. If not,
// this process was too slow to stop the handler in time, and the store was right to grant the
// key to another caller.
func (w *lateWorld) begin(running map[claimOf]bool, c claimOf) {
	w.ran.Add(1)
	for other := range running {
		if w.overlap(c, other) {
			w.beside.Add(1)
		} else {
			w.late.Add(1)
		}
	}
	running[c] = true
}

// round has four callers run one key until it is done or parked.
func (w *lateWorld) round(t *testing.T, guards [2][2]*semel.Guard, key string, policy int) {
	var mu sync.Mutex
	running := map[claimOf]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			unanswered := 0
			for ctx.Err() == nil {
				_, err := guards[i%2][policy].Run(ctx, semel.Call{Operation: "op", Tenant: "t", Key: key, Payload: semel.NoPayload()},
					func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
						c := claimOf{key, x.Fence()}
						mu.Lock()
						w.begin(running, c)
						mu.Unlock()
						defer func() {
							mu.Lock()
							defer mu.Unlock()
							delete(running, c)
						}()
						select {
						case <-time.After(rand.N(w.longest)):
						case <-ctx.Done():
						}
						return store.Outcome{Body: []byte("x")}, nil
					})
				switch {
				case err == nil || errors.Is(err, semel.ErrOutcomeNotStored):
					w.done.Add(1)
					return
				case errors.Is(err, semel.ErrParked):
					w.parked.Add(1)
					return
				case errors.Is(err, semel.ErrUnavailable): // on a slow machine each try makes the others slower
					unanswered = min(unanswered+1, 5)
				default:
					unanswered = 0
				}
				if !w.pause(5<<unanswered, 60<<unanswered) {
					return
				}
			}
			w.stuck.Do(func() { t.Errorf("%q is neither done nor parked after 5 minutes", key) })
		})
	}
	all.Wait()
}

// rounds runs n keys, 64 at a time.
func (w *lateWorld) rounds(t *testing.T, guards [2][2]*semel.Guard, n int) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := next.Add(1); int(i) <= n && !t.Failed(); i = next.Add(1) {
				w.round(t, guards, fmt.Sprint("key ", w.keys.Add(1)), int(i%2))
			}
		})
	}
	all.Wait()
}

// The client's requests come late and twice, and claims are acknowledged by a real
// WAIT whose replica freezes again and again: no two handlers of a key run side by
// side.
func TestRequestsLateAndDoubled_NoHandlersSideBySide(t *testing.T) {
	t.Parallel()
	w := newLateWorld(t)
	n := 64
	if long() {
		n = 1500
	}
	guards := w.guards(t, func(s *Store) store.Store { return s })
	w.rounds(t, guards, n)
	for i := 0; w.refused.Load() == 0 && i < 20 && !t.Failed(); i++ { // the replica may have been awake for each claim
		w.rounds(t, guards, 64)
		n += 64
	}
	figure(t, "with requests that come late and twice, and a replica that freezes, no two handlers of a key run side by side", false, int64(n), w.beside.Load(),
		fmt.Sprintf("%d handlers ran; %d claims were refused because no replica acknowledged, %d ended done and %d parked; %d requests were held back and %d sent twice; %d handlers began while another went on after its lease had ended",
			w.ran.Load(), w.refused.Load(), w.done.Load(), w.parked.Load(), w.proxy.held.Load(), w.proxy.doubled.Load(), w.late.Load()))
	if w.beside.Load() != 0 {
		t.Errorf("%d handlers ran beside another of their key", w.beside.Load())
	}
	if w.refused.Load() == 0 || w.proxy.held.Load() == 0 || w.proxy.doubled.Load() == 0 || w.ran.Load() < int64(n)/2 {
		t.Errorf("%d refusals, %d requests held back, %d doubled, %d handlers: the test sees nothing",
			w.refused.Load(), w.proxy.held.Load(), w.proxy.doubled.Load(), w.ran.Load())
	}
}

// undoing takes an unacknowledged claim back, as the store once did, and so late that the claim
// has been sent again and granted.
type undoing struct {
	*Store
	direct         *Store
	unacknowledged *sync.Map // the owners of claims
	late           *sync.WaitGroup
}

func (u undoing) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	f, err := u.Store.Claim(ctx, p)
	if errors.Is(err, ErrNotAcknowledged) {
		u.unacknowledged.Store(p.Owner, true)
	} else if _, late := u.unacknowledged.LoadAndDelete(p.Owner); late && err == nil && f.Won {
		u.late.Go(func() { _, _ = u.direct.Renew(context.WithoutCancel(ctx), []store.Lease{f.Record.Lease()}, -time.Hour) })
	}
	return f, err
}

// The harness must be able to see a compensation that comes late.
func TestClaimIsTakenBackLate_HandlersRunSideBySide(t *testing.T) {
	t.Parallel()
	w := newLateWorld(t)
	w.longest = 4 * time.Second // which leaves time for a second handler
	var unacknowledged sync.Map
	var late sync.WaitGroup
	t.Cleanup(late.Wait)
	guards := w.guards(t, func(s *Store) store.Store {
		return undoing{s, openOn(t, clientAt(t, w.master.URL()), &Options{Prefix: s.opt.Prefix, AllowPark: true}), &unacknowledged, &late}
	})
	n := 0
	for ; n < 50 && w.beside.Load() == 0 && !t.Failed(); n++ {
		w.rounds(t, [2][2]*semel.Guard{{guards[0][0], guards[0][0]}, {guards[1][0], guards[1][0]}}, 64)
	}
	figure(t, "with a claim that is taken back late, handlers of a key run side by side", true, int64(64*n), w.beside.Load(), "")
	if w.beside.Load() == 0 {
		t.Error("no handlers ran side by side: the harness is blind")
	}
}
