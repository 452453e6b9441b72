package nearcache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/nearcache"
	"github.com/semel-go/semel/store/storetest"
	"github.com/semel-go/semel/sweep"
)

func newGuard(t testing.TB, st store.Store, o *semel.Options) *semel.Guard {
	t.Helper()
	g, err := semel.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func call(key string, payload string) semel.Call {
	return semel.Call{Operation: "op", Tenant: "t", Key: key, Payload: semel.Bytes([]byte(payload))}
}

func answer(body string) semel.Handler {
	return func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{Body: []byte(body)}, nil
	}
}

// A replay through the Guard makes no trip and at most seven allocations, which are
// the Guard's: four are the context that ends after StoreTimeout. The cache makes none.
func TestReplay_Cached_AllocatesLittleAndMakesNoTrip(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	mem := storetest.NewFault(memstore.New(nil), nil)
	c := newCache(t, mem, nil)
	g := newGuard(t, c, nil)
	run := func() {
		if res, err := g.Run(t.Context(), call("k", "pay 10"), answer("done")); err != nil || string(res.Body) != "done" {
			t.Fatalf("%q, %v", res.Body, err)
		}
	}
	run()
	before := mem.Calls(storetest.OpClaim) + mem.Calls(storetest.OpGet)
	if n := testing.AllocsPerRun(1000, run); n > 7 {
		t.Errorf("a replay allocates %v times", n)
	} else {
		t.Logf("a replay through the Guard allocates %v times", n)
	}
	p := proposal("k")
	f := claim(t, c, "kk")
	if err := c.Settle(t.Context(), f.Record.Lease(), settlement(time.Hour)); err != nil {
		t.Fatal(err)
	}
	p.Key = f.Record.Key
	if n := testing.AllocsPerRun(1000, func() { _, _ = c.Claim(t.Context(), p) }); n != 0 {
		t.Errorf("a hit allocates %v times in the cache", n)
	}
	if after := mem.Calls(storetest.OpClaim) + mem.Calls(storetest.OpGet); after != before+1 { // the trip for kk
		t.Errorf("replays made %d trips to the store", after-before-1)
	}
}

func TestClaim_CachedKeyOtherPayload_IsMismatch(t *testing.T) {
	w := newWorld(t, nil)
	g := newGuard(t, w, nil)
	if _, err := g.Run(t.Context(), call("k", "pay 10"), answer("done")); err != nil {
		t.Fatal(err)
	}
	w.trip(t, 0, "a mismatch", func() {
		if _, err := g.Run(t.Context(), call("k", "pay 99"), answer("again")); !errors.Is(err, semel.ErrMismatch) {
			t.Errorf("another payload: %v", err)
		}
	})
}

// twin is one of two worlds in which the same happens: two processes on one
// store, with caches or without.
type twin struct {
	clock  *clock
	front  *shared // nil: there is none
	st     [2]store.Store
	mem    *memstore.Store
	caches []*nearcache.Store
}

func newTwin(t testing.TB, cached bool, rng *rand.Rand) *twin {
	w := &twin{clock: newClock()}
	w.mem = memstore.New(&memstore.Options{Now: w.clock.Now})
	var front store.Store
	if cached && rng.IntN(2) == 0 {
		w.front = newShared()
		front = storetest.NewFault(w.front, storetest.Chance(rng.Uint64(), 0.2, storetest.Before, storetest.LostReply, storetest.Twice, storetest.Late))
	}
	for i := range w.st {
		w.st[i] = w.mem
		if cached {
			o := &nearcache.Options{Front: front, FrontCooldown: 1, FrontTimeout: time.Minute, Now: w.clock.Now, MaxAge: time.Duration(1+rng.IntN(200)) * time.Second, Skew: time.Duration(rng.IntN(int(2 * time.Second)))}
			if rng.IntN(4) == 0 {
				o.MaxBytes = 6 << 10
			}
			c := newCache(t, w.st[i], o)
			w.st[i], w.caches = c, append(w.caches, c)
		}
	}
	return w
}

var errPlain = errors.New("boom")

// play makes one step, and says what came of it. All that it does is drawn
// from rng.
func (w *twin) play(t testing.TB, i int, rng *rand.Rand) string {
	ctx := t.Context()
	st := w.st[rng.IntN(2)]
	key, payload := fmt.Sprint(rng.IntN(4)), fmt.Sprint("pay ", rng.IntN(8)/7)
	o := &semel.Options{Retention: time.Minute, OnDoubt: semel.Policy(rng.IntN(3) / 2), MaxAttempts: rng.IntN(3), Holder: "test"}
	o.Rerun = o.OnDoubt == semel.Retry && rng.IntN(12) == 0
	g := newGuard(t, st, o)
	ran := 0
	how := rng.IntN(10)
	handler := func(context.Context, *semel.Execution) (store.Outcome, error) {
		ran++
		switch how {
		case 0:
			return store.Outcome{}, semel.NoEffect(errPlain)
		case 1:
			return store.Outcome{}, semel.Final(errPlain)
		case 2:
			return store.Outcome{}, errPlain
		}
		return store.Outcome{Code: 200 + i, Body: []byte(fmt.Sprint("step ", i))}, nil
	}
	show := func(res semel.Result, err error) string {
		return fmt.Sprintf("ran %d, code %d, body %q, replayed %v, error %v", ran, res.Code, res.Body, res.Replayed, err)
	}
	switch deed := rng.IntN(20); {
	case deed < 12:
		return "run: " + show(g.Run(ctx, call(key, payload), handler))
	case deed < 14: // a process that dies
		p := proposal(key)
		p.Owner, p.Policy, p.Lease = store.Owner{9, byte(i)}, o.OnDoubt, 10*time.Second
		f, err := st.Claim(ctx, p)
		return fmt.Sprintf("crash: won %v, %v, %v", f.Won, f.Record.State, err)
	case deed < 15:
		n, err := sweep.Once(ctx, st, nil)
		return fmt.Sprintf("sweep: %+v, %v", n, err)
	case deed < 16: // an operator
		r, err := g.Get(ctx, semel.Call{Operation: "op", Tenant: "t", Key: key})
		if err != nil {
			return fmt.Sprintf("resolve: %v", err)
		}
		err = g.Resolve(ctx, r, semel.Happened(store.Outcome{Body: []byte(fmt.Sprint("resolved ", i))}))
		return fmt.Sprintf("resolve: it was %v, attempt %d, expires %v: %v", r.State, r.Attempt, r.Expires, err)
	default:
		d := time.Duration(rng.IntN(int(25 * time.Second))).Truncate(time.Microsecond)
		w.clock.Advance(d)
		if w.front != nil {
			w.front.clock.Advance(d)
			if f, ok := w.st[0].(*nearcache.Store); ok && i%5 == 0 {
				f.Late(ctx)
			}
		}
		return fmt.Sprint("pass ", d)
	}
}

// Two processes with caches, and perhaps a front between them that loses calls,
// answers and, later on, calls again, answer what two without do, over random
// histories.
func TestGuard_Cache_AnswersAsWithout(t *testing.T) {
	n := 200
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		n = 2000
	}
	var hits uint64
	for h := range n {
		seed := rand.Uint64()
		rngs := [2]*rand.Rand{rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 1))}
		plain, cached := newTwin(t, false, rand.New(rand.NewPCG(seed, 2))), newTwin(t, true, rand.New(rand.NewPCG(seed, 2)))
		for i := range 60 {
			want, got := plain.play(t, i, rngs[0]), cached.play(t, i, rngs[1])
			if want != got {
				t.Fatalf("history %d of seed %#x, step %d:\nwith a cache %s\nwithout      %s", h, seed, i, got, want)
			}
		}
		for _, c := range cached.caches {
			hits += c.Stats().Hits
			c.Check()
		}
	}
	t.Logf("%d histories, %d hits", n, hits)
	if hits < uint64(n) {
		t.Errorf("%d histories had only %d hits", n, hits)
	}
}

// Many goroutines, a cache that is too small, and a network that loses: each
// key runs once, and every duplicate gets that answer.
func TestStorm(t *testing.T) {
	chance := storetest.Chance(7, 0.1, storetest.Before, storetest.LostReply, storetest.Twice)
	mem := storetest.NewFault(memstore.New(nil), chance)
	c := newCache(t, mem, &nearcache.Options{MaxBytes: 16 << 10})
	g := newGuard(t, c, &semel.Options{Lease: 5 * time.Minute})
	const keys = 200
	var runs [keys]atomic.Int32
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for range 400 {
				k := rng.IntN(keys)
				cl := call(fmt.Sprint(k), "pay")
				cl.Wait = time.Minute
				res, err := g.Run(t.Context(), cl, func(context.Context, *semel.Execution) (store.Outcome, error) {
					runs[k].Add(1)
					return store.Outcome{Body: []byte(fmt.Sprint("key ", k))}, nil
				})
				if errors.Is(err, semel.ErrUnavailable) {
					continue // four losses in a row
				}
				if err != nil || string(res.Body) != fmt.Sprint("key ", k) {
					t.Errorf("key %d: %q, %v", k, res.Body, err)
				}
				if rng.IntN(20) == 0 {
					_, _ = c.Sweep(t.Context(), "", 10)
				}
			}
		})
	}
	all.Wait()
	c.Check()
	for k := range runs {
		if n := runs[k].Load(); n > 1 {
			t.Errorf("key %d ran %d times", k, n)
		}
	}
	if s := c.Stats(); s.Hits == 0 || s.Evicted == 0 {
		t.Errorf("%+v", s)
	}
}

// Other programs may use the front as a store and sweep it. The key of a process
// that died while writing to the front is free after their sweep.
func TestFront_SweptByOthers_KeyIsFree(t *testing.T) {
	p := newPair(t, nearcache.Options{}, nil)
	dead := proposal("k")
	dead.Key.Operation += "##front"
	if f, err := p.front.Claim(t.Context(), dead); err != nil || !f.Won {
		t.Fatal(err)
	}
	p.pass(dead.Lease)
	if _, err := sweep.Once(t.Context(), p.front, nil); err != nil {
		t.Fatal(err)
	}
	complete(t, p, "k", time.Hour)
	p.other.trip(t, 0, "a duplicate", func() { claim(t, p.other, "k") })
}
