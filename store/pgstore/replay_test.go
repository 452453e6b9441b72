package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// setReplayLookups makes all calls look up replays first, or none.
func (p *shop) setReplayLookups(is bool) {
	p.a.duplicates.share.Store(0)
	p.a.duplicates.running.Store(0)
	if is {
		p.a.duplicates.share.Store(shareUnit)
		p.a.duplicates.running.Store(1000)
	}
}

// onePool is a shop whose application has one connection.
func onePool(t *testing.T) *shop {
	t.Helper()
	url := pgtest.URL(t)
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), sized(cfg, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := New(t.Context(), pool, &Options{Schema: newSchema(t, url), Partitions: allPartitions})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return newShop(t, s, nil)
}

func TestReplayLookup_ManyDuplicates_NoPoolConnection(t *testing.T) {
	t.Parallel()
	p := onePool(t)
	for i := range 3 {
		if _, err := Do(t.Context(), p.a, call(itoa(i)), p.pay(itoa(i), nil)); err != nil {
			t.Fatal(err)
		}
	}
	held, err := p.s.appPool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.setReplayLookups(true)
	var all sync.WaitGroup
	for i := range 60 { // of a key there are many at once
		all.Go(func() {
			key := itoa(i % 3)
			got, err := Do(t.Context(), p.a, call(key), func(context.Context, *semel.Execution, pgx.Tx) (string, error) {
				return "", errors.New("it ran again")
			})
			if err != nil || got != "receipt of "+key {
				t.Errorf("%s: got %q, %v", key, got, err)
			}
		})
	}
	all.Wait()
	held.Release()
	p.setReplayLookups(true)
	if _, err := Do(t.Context(), p.a, call("new"), p.pay("new", nil)); err != nil {
		t.Error(err)
	}
	p.want(t, "0", "1", "2", "new")
}

// Whatever there is of a key: a call that looks for it first ends as one that
// does not.
func TestReplayLookup_EachState_SameAnswer(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(p *shop, key string){
		"absent": func(*shop, string) {},
		"completed": func(p *shop, key string) {
			_, _ = Do(t.Context(), p.a, call(key), p.pay(key, nil))
		},
		"failed": func(p *shop, key string) {
			_, _ = Do(t.Context(), p.a, call(key), p.pay(key, &semel.Failure{Code: "declined", Message: "no"}))
		},
		"of another payload": func(p *shop, key string) {
			_, _ = Do(t.Context(), p.a, semel.Call{Operation: "pay", Tenant: "ann", Key: key, Payload: semel.JSON(map[string]int{"amount": 1})}, p.pay(key, nil))
		},
		"tried": func(p *shop, key string) {
			_, _ = Do(t.Context(), p.a, call(key), p.pay(key, errors.New("a try")))
		},
		"expired": func(p *shop, key string) {
			_, _ = Do(t.Context(), p.a, call(key), p.pay(key, nil))
			mustExec(t, p.s.ownPool, "UPDATE "+p.s.quoted()+".semel_record SET expires = 1 WHERE key = $1", []byte(key))
		},
		"held by a lease": func(p *shop, key string) {
			pr := proposal(key)
			pr.Key.Operation, pr.Key.Tenant, pr.Fingerprint = "pay", "ann", store.Fingerprint{}
			if _, err := p.s.Claim(t.Context(), pr); err != nil {
				t.Error(err)
			}
		},
		"corrupt": func(p *shop, key string) {
			_, _ = Do(t.Context(), p.a, call(key), p.pay(key, nil))
			mustExec(t, p.s.ownPool, "UPDATE "+p.s.quoted()+".semel_record SET format = 99 WHERE key = $1", []byte(key))
		},
	}
	for name, prepare := range kinds {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{1, 12} { // alone, and in a batch
				var ends [2][]string
				for i, first := range []bool{false, true} {
					var mu sync.Mutex
					var events []string
					p := newShop(t, openNew(t, nil), &semel.Options{Observe: func(_ context.Context, e semel.Event) {
						mu.Lock()
						defer mu.Unlock()
						events = append(events, fmt.Sprint(e.Kind))
					}})
					p.setReplayLookups(false)
					for k := range n {
						prepare(p, itoa(k))
					}
					events = nil
					ran := make([]bool, n)
					p.setReplayLookups(first)
					told := make([]string, n)
					var all sync.WaitGroup
					for k := range n {
						all.Go(func() {
							got, err := Do(t.Context(), p.a, call(itoa(k)), func(context.Context, *semel.Execution, pgx.Tx) (string, error) {
								ran[k] = true
								return "again", nil
							})
							reason := "none"
							if e, ok := errors.AsType[*semel.Error](err); ok {
								reason = e.Reason.Error()
							} else if err != nil {
								reason = err.Error()
							}
							told[k] = fmt.Sprint(got, ", ran ", ran[k], ", ", reason)
						})
					}
					all.Wait()
					slices.Sort(events)
					ends[i] = append(told, events...)
				}
				if !slices.Equal(ends[0], ends[1]) {
					t.Errorf("of %d: %q,\nand with the look beforehand %q", n, ends[0], ends[1])
				}
				if len(ends[0]) != 2*n {
					t.Errorf("%d ends and events of %d calls: %q", len(ends[0]), n, ends[0])
				}
			}
		})
	}
}

func TestReplayLookup_Fails_CallContinues(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	p.setReplayLookups(true)
	p.s.ownPool.Close()
	for range 2 {
		got, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil))
		if err != nil || got != "receipt of k" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	p.want(t, "k")
}

func TestReplayLookup_Hangs_CallContinues(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, &Options{Connections: 1}), nil)
	held, err := p.s.ownPool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	p.setReplayLookups(true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*replayTimeout)
	defer cancel()
	if _, err := Do(ctx, p.a, call("k"), p.pay("k", nil)); err != nil {
		t.Error(err)
	}
	p.want(t, "k")
}

func TestReplayLookup_FewDuplicates_NotUsed(t *testing.T) {
	t.Parallel()
	var d duplicateRate
	try := func(n int, duplicate func(i int) bool) (looks int) {
		for i := range n {
			if d.high() {
				looks++
			}
			d.count(duplicate(i))
		}
		return looks
	}
	newCalls := func(int) bool { return false }
	half := func(i int) bool { return i%2 > 0 }
	every := func(int) bool { return true }
	d.running.Store(100)
	if n := try(1000, newCalls); n != 0 {
		t.Errorf("%d looks without a duplicate", n)
	}
	if n := try(100, half); n < 95 {
		t.Errorf("%d looks of 100 in a crowd, half of it duplicates", n)
	}
	if n := try(1000, newCalls); n > 60 {
		t.Errorf("%d looks after the last duplicate", n)
	}
	d.running.Store(1)
	if n := try(100, half); n != 0 {
		t.Errorf("%d looks of 100 by one call after the other, half of them duplicates", n)
	}
	if n := try(100, every); n < 80 {
		t.Errorf("%d looks of 100 by one duplicate after the other", n)
	}
}

func TestDuplicateRate_FollowsResults(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	pay := func(key string) {
		t.Helper()
		if _, err := Do(t.Context(), p.a, call(key), p.pay(key, nil)); err != nil {
			t.Fatal(err)
		}
	}
	pay("k")
	if n := p.a.duplicates.share.Load(); n != 0 {
		t.Errorf("%d after a new key", n)
	}
	for range 40 {
		pay("k")
	}
	high := p.a.duplicates.share.Load()
	if high < shareUnit*9/10 {
		t.Errorf("%d after 40 duplicates", high)
	}
	pay("k") // by the look beforehand
	if is := p.a.duplicates.share.Load(); is < high {
		t.Errorf("from %d down to %d by a duplicate", high, is)
	}
	pay("new")
	if is := p.a.duplicates.share.Load(); is >= high {
		t.Errorf("from %d to %d by a new key", high, is)
	}
	if n := p.a.duplicates.running.Load(); n != 0 {
		t.Errorf("%d are running", n)
	}
}
