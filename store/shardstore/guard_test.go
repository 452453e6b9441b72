package shardstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/shardstore"
	"github.com/semel-go/semel/sweep"
)

var errPlain = errors.New("boom")

// play makes one step on a store, and says what came of it. All that it does is
// drawn from rng.
func play(t testing.TB, st store.Store, pass func(time.Duration), i int, rng *rand.Rand) string {
	ctx, value, payload := t.Context(), fmt.Sprint(rng.IntN(6)), fmt.Sprint("pay ", rng.IntN(8)/7)
	o := &semel.Options{Retention: time.Minute, OnDoubt: semel.Policy(rng.IntN(2)), MaxAttempts: rng.IntN(3), Holder: "test"}
	g, err := semel.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	how, ran := rng.IntN(8), 0
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
		return store.Outcome{Body: []byte(fmt.Sprint("step ", i))}, nil
	}
	switch deed := rng.IntN(20); {
	case deed < 12:
		res, err := g.Run(ctx, semel.Call{Operation: "op", Tenant: "t", Key: value, Payload: semel.Bytes([]byte(payload))}, handler)
		return fmt.Sprintf("run: ran %d, body %q, replayed %v, %v", ran, res.Body, res.Replayed, err)
	case deed < 14:
		p := proposal(key(value), byte(i+1))
		p.Policy, p.Lease = o.OnDoubt, 10*time.Second
		f, err := st.Claim(ctx, p)
		return fmt.Sprintf("crash: won %v, %v, %v", f.Won, f.Record.State, err)
	case deed < 15:
		n, err := sweep.Once(ctx, st, nil)
		return fmt.Sprintf("sweep: %+v, %v", n, err)
	case deed < 16:
		l, _ := store.As[store.Lister](st)
		found := map[string]store.State{}
		for f, err := range l.List(ctx, store.Filter{Idle: time.Duration(rng.IntN(60)) * time.Second}) {
			if err != nil {
				return err.Error()
			}
			found[f.Record.Key.Value] = f.Record.State
		}
		return fmt.Sprint("list: ", found)
	default:
		d := time.Duration(rng.IntN(int(25 * time.Second))).Truncate(time.Microsecond)
		pass(d)
		return fmt.Sprint("pass ", d)
	}
}

// A Guard on shards, each with a clock of its own, answers what one on a
// single store does, over random histories.
func TestGuard_Shards_AnswersAsOnOneStore(t *testing.T) {
	n := 200
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		n = 1000
	}
	for h := range n {
		seed := rand.Uint64()
		a, b := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 1))
		c := newClock()
		one := memstore.New(&memstore.Options{Now: c.Now})
		many := newWorld(t, 1+int(seed%5), time.Duration(seed%7)*time.Hour, nil)
		for i := range 60 {
			// Time passes between two steps. Otherwise a sweep on the single store, and
			// not on the key's shard, makes the next fence later than the clock, and a
			// call without effect then binds its key; see beganLife in package semel.
			c.Advance(time.Microsecond)
			many.pass(time.Microsecond)
			want, got := play(t, one, c.Advance, i, a), play(t, many, many.pass, i, b)
			if want != got {
				t.Fatalf("history %d of seed %#x, step %d:\non %d shards %s\non one store %s", h, seed, i, len(many.mems), got, want)
			}
		}
	}
}

// A shard whose records cannot be listed affects its own parked calls only.
func TestReconcile_ShardDownOrHangs_CallsOfOthersAreDecided(t *testing.T) {
	for name, a := range map[string]store.Store{"is down": failing{memstore.New(nil)}, "hangs": &frozen{Store: memstore.New(nil)}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStore(t, shardstore.Shard{Name: "a", Store: a}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
				k := store.Key{Operation: "pay", Tenant: "ann"}
				for i := 0; k.Value == "" || st.On(k) != "b"; i++ {
					k.Value = fmt.Sprint(i)
				}
				g, err := semel.New(st, &semel.Options{OnDoubt: semel.Park, Reconcile: func(context.Context, *semel.Execution) (semel.Verdict, error) {
					return semel.DidNotHappen(), nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				r := claim(t, st, k)
				if err := st.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Unknown, Attempt: 1}); err != nil {
					t.Fatal(err)
				}
				if f, ok := a.(*frozen); ok {
					f.hangs.Store(true)
				}
				n, err := g.Reconcile(t.Context(), "pay", 10)
				if n != 1 || !errors.Is(err, semel.ErrUnavailable) || !strings.Contains(err.Error(), `"a"`) {
					t.Errorf("%d calls decided, error %v; want 1 and the error of a", n, err)
				}
				if f, err := st.Get(t.Context(), k); err != nil || f.Record.State != store.Released {
					t.Errorf("the parked call of the shard that answers is %v, error %v", f.Record.State, err)
				}
			})
		})
	}
}
