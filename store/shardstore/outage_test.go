package shardstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/shardstore"
	"github.com/semel-go/semel/store/storetest"
)

// names fails unless err is the fault, names the shard and no key.
func names(t *testing.T, what string, err error, shard int, keys []store.Key) {
	t.Helper()
	if !isInjected(err) || !strings.Contains(err.Error(), fmt.Sprintf("shard %q", fmt.Sprint("s", shard))) {
		t.Errorf("%s on a shard that is down: %v", what, err)
		return
	}
	for _, k := range keys {
		if strings.Contains(err.Error(), "value-"+k.Value) {
			t.Errorf("%s: the error holds a key: %v", what, err)
		}
	}
}

func TestShardDown_OnlyItsKeys_Fail(t *testing.T) {
	const bad = 1
	isDown := false
	w := newWorld(t, 3, 0, func(i int, op storetest.Op, n int) storetest.Mode {
		if isDown {
			return down(bad)(i, op, n)
		}
		return storetest.None
	})
	keys := w.on(t)
	leases := make([]store.Lease, len(keys))
	for i, k := range keys {
		r := claim(t, w, k)
		leases[i] = r.Lease()
	}
	isDown = true
	for i, k := range keys {
		what := map[string]error{}
		_, what["Claim"] = w.Claim(t.Context(), proposal(k, 2))
		_, what["Get"] = w.Get(t.Context(), k)
		_, what["Swap"] = w.Swap(t.Context(), store.Seen{Key: k}, proposal(k, 2))
		errs, err := w.Renew(t.Context(), leases, time.Hour)
		if err != nil || len(errs) != len(leases) {
			t.Fatalf("Renew: %d results, %v", len(errs), err)
		}
		what["Renew"] = errs[i]
		what["Settle"] = w.Settle(t.Context(), leases[i], settlement())
		for m, err := range what {
			if i == bad {
				names(t, m, err, bad, keys)
			} else if err != nil {
				t.Errorf("%s on a shard that is up: %v", m, err)
			}
		}
	}
}

func TestAnswers_OfShard_AreNotWrapped(t *testing.T) {
	w := newWorld(t, 3, 0, nil)
	if _, err := w.Get(t.Context(), key("absent")); err != store.ErrNotFound {
		t.Errorf("Get: %v", err)
	}
	if err := w.Settle(t.Context(), store.Lease{Key: key("absent")}, settlement()); err != store.ErrLeaseLost {
		t.Errorf("Settle: %v", err)
	}
	if errs, err := w.Renew(t.Context(), []store.Lease{{Key: key("absent")}}, time.Hour); err != nil || errs[0] != store.ErrLeaseLost {
		t.Errorf("Renew: %v, %v", errs, err)
	}
	large := newStore(t, shardstore.Shard{Name: "a", Store: tooLarge{memstore.New(nil)}})
	if err := large.Settle(t.Context(), store.Lease{}, settlement()); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("Settle of what is too large: %v", err)
	}
}

type tooLarge struct{ store.Store }

func (tooLarge) Settle(context.Context, store.Lease, store.Settlement) error {
	return store.ErrTooLarge
}

// deaf is a store whose renewals hang, whatever becomes of their context.
type deaf struct {
	store.Store
	wake chan struct{}
}

func (d deaf) Renew(context.Context, []store.Lease, time.Duration) ([]error, error) {
	<-d.wake
	return nil, nil
}

// few gives fewer results than it was asked for.
type few struct{ store.Store }

func (few) Renew(context.Context, []store.Lease, time.Duration) ([]error, error) {
	return []error{nil}, nil
}

func TestRenew_ShardHangs_OthersAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := deaf{memstore.New(nil), make(chan struct{})}
		short := few{memstore.New(nil)}
		good := memstore.New(nil)
		s := newStore(t, shardstore.Shard{Name: "good", Store: good}, shardstore.Shard{Name: "hung", Store: hung}, shardstore.Shard{Name: "short", Store: short})
		var held []store.Lease
		for i := range 60 {
			r := claim(t, s, key(fmt.Sprint(i)))
			held = append(held, r.Lease())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		errs, err := s.Renew(ctx, held, time.Hour)
		if err != nil || len(errs) != len(held) {
			t.Fatalf("%d results, %v", len(errs), err)
		}
		for i, err := range errs {
			switch on := s.On(held[i].Key); on {
			case "good":
				if f, gerr := good.Get(t.Context(), held[i].Key); err != nil || gerr != nil || f.Record.Until.Sub(f.Record.Updated) != time.Hour {
					t.Errorf("a lease of a shard that is well: %v, until %v", err, f.Record.Until)
				}
			case "hung":
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `"hung"`) {
					t.Errorf("a lease of a shard that hangs: %v", err)
				}
			case "short":
				if err == nil || !strings.Contains(err.Error(), `"short"`) {
					t.Errorf("a lease of a shard that leaves results out: %v", err)
				}
			}
		}
		close(hung.wake)
	})
}

// A handler whose key is on a shard that is well keeps its lease beside one
// whose renewals hang for ever.
func TestGuard_ShardHangs_HandlerKeepsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := deaf{memstore.New(nil), make(chan struct{})}
		s := newStore(t, shardstore.Shard{Name: "good", Store: memstore.New(nil)}, shardstore.Shard{Name: "hung", Store: hung})
		g, err := semel.New(s, &semel.Options{Lease: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		on := map[string]semel.Call{}
		for i := 0; len(on) < 2; i++ {
			k := store.Key{Operation: "op", Tenant: "t", Value: fmt.Sprint(i)}
			on[s.On(k)] = semel.Call{Operation: "op", Tenant: "t", Key: k.Value, Payload: semel.NoPayload()}
		}
		work := func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			select {
			case <-time.After(5 * time.Minute):
				return store.Outcome{Body: []byte("done")}, nil
			case <-ctx.Done():
				return store.Outcome{}, context.Cause(ctx)
			}
		}
		lost := make(chan error, 1)
		go func() {
			_, err := g.Run(t.Context(), on["hung"], work)
			lost <- err
		}()
		synctest.Wait()
		if res, err := g.Run(t.Context(), on["good"], work); err != nil || string(res.Body) != "done" {
			t.Errorf("on the shard that is well: %q, %v", res.Body, err)
		}
		if err := <-lost; !errors.Is(err, semel.ErrLeaseLost) {
			t.Errorf("on the shard that hangs: %v", err)
		}
		close(hung.wake)
	})
}

// The keys of other shards are not concerned by the error of one, so that nobody
// takes it for an outage of the store; and the store answers a Ping while any
// shard does.
func TestShardDown_Error_ConcernsItsKeysOnly(t *testing.T) {
	const bad = 1
	var allDown atomic.Bool
	w := newWorld(t, 3, 0, func(i int, op storetest.Op, n int) storetest.Mode {
		if allDown.Load() {
			return storetest.Before
		}
		return down(bad)(i, op, n)
	})
	g, err := semel.New(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Run(t.Context(), semel.Call{Operation: "op", Tenant: "t", Key: w.on(t)[bad].Value, Payload: semel.NoPayload()}, func(context.Context, *semel.Execution) (store.Outcome, error) {
		t.Error("the handler ran")
		return store.Outcome{}, nil
	})
	if !errors.Is(err, semel.ErrUnavailable) || store.Affects(err) != store.ExtentPart {
		t.Errorf("extent %d of %v", store.Affects(err), err)
	}
	if err := store.Ping(t.Context(), w); err != nil {
		t.Errorf("two of three shards answer: %v", err)
	}
	allDown.Store(true)
	if err := store.Ping(t.Context(), w); !isInjected(err) || !strings.Contains(err.Error(), `"s0"`) || !strings.Contains(err.Error(), `"s2"`) {
		t.Errorf("no shard answers: %v", err)
	}
	one := newWorld(t, 1, 0, down(0))
	if _, err := one.Claim(t.Context(), proposal(key("k"), 1)); !isInjected(err) || store.Affects(err) != store.ExtentStore {
		t.Errorf("the only shard: extent %d of %v", store.Affects(err), err)
	}
}

// A shard that hangs, even one that ignores its context, delays no Ping.
func TestPing_ShardHangs_OthersAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{})
		hung := func(name string) shardstore.Shard {
			return shardstore.Shard{Name: name, Store: mute{memstore.New(nil), wake}}
		}
		s := newStore(t, hung("a"), shardstore.Shard{Name: "b", Store: memstore.New(nil)})
		if err := store.Ping(t.Context(), s); err != nil {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := store.Ping(ctx, newStore(t, hung("a"), hung("b"))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("all hang: %v", err)
		}
		close(wake)
	})
}

// mute is a store whose reads hang, whatever becomes of their context.
type mute struct {
	store.Store
	wake chan struct{}
}

func (m mute) Get(context.Context, store.Key) (store.Found, error) {
	<-m.wake
	return store.Found{}, store.ErrNotFound
}
