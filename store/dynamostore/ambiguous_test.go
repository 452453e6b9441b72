package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// campaign is calls of two processes through a bad network.
type campaign struct {
	network *badNetwork
	guards  [2][2]*semel.Guard // by process and policy
	direct  *Store

	effects, beside, done, parked, twice atomic.Int64
}

func newCampaign(t *testing.T, perMille int64) *campaign {
	c := &campaign{network: newBadNetwork(t, perMille), direct: openNew(t, nil)}
	for i := range c.guards {
		s := openOn(t, c.network.through(t), c.direct.table, &c.direct.opt)
		for p := range c.guards[i] {
			g, err := semel.New(s, &semel.Options{
				OnDoubt: semel.Policy(p), Lease: 20 * time.Second, StoreTimeout: 10 * time.Second, SettleTimeout: 15 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			c.guards[i][p] = g
		}
	}
	return c
}

// round has callers run one key until it is done or parked, and counts its effects.
func (c *campaign) round(t *testing.T, key string, policy int) {
	var running, effects atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			for ctx.Err() == nil {
				_, err := c.guards[i%2][policy].Run(ctx, semel.Call{Operation: "op", Tenant: "t", Key: key, Payload: semel.NoPayload()},
					func(context.Context, *semel.Execution) (store.Outcome, error) {
						if running.Add(1) > 1 {
							c.beside.Add(1)
						}
						defer running.Add(-1)
						effects.Add(1)
						return store.Outcome{Body: []byte(key)}, nil
					})
				switch {
				case err == nil || errors.Is(err, semel.ErrOutcomeNotStored):
					c.done.Add(1)
					return
				case errors.Is(err, semel.ErrParked):
					c.parked.Add(1)
					return
				}
				if !sleep(ctx, 20*time.Millisecond) {
					t.Errorf("%q has no end: %v", key, err)
				}
			}
		})
	}
	all.Wait()
	c.effects.Add(effects.Load())
	if semel.Policy(policy) == semel.Park && effects.Load() > 1 {
		c.twice.Add(1)
		t.Errorf("under park %q had %d effects", key, effects.Load())
	}
}

// Requests are lost, carried out without a reply, carried out late and twice. Under
// park no effect happens twice, and under retry no two handlers of a key run side by
// side.
func TestGuard_RequestsLostLateAndDoubled_NoDoubleEffect(t *testing.T) {
	t.Parallel()
	c := newCampaign(t, 150)
	n := 48
	if long() {
		n = 3000
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := next.Add(1); (int(i) <= n || int(i) <= 20*n && !c.network.allSeen()) && !t.Failed(); i = next.Add(1) {
				c.round(t, fmt.Sprint("key ", i), int(i%2))
			}
		})
	}
	all.Wait()
	c.network.late.Wait()
	c.network.sawAll(t)
	counts := &c.network.counts
	figure(t, "with requests lost, late and doubled, no effect happens twice under park, and no handlers run side by side", false, int64(n), c.twice.Load()+c.beside.Load(),
		fmt.Sprintf("%d effects, %d callers got the outcome and %d found it parked; %d requests lost, %d replies cut, %d requests late, %d doubled",
			c.effects.Load(), c.done.Load(), c.parked.Load(), counts[fateLost].Load(), counts[fateCut].Load(), counts[fateLate].Load(), counts[fateDoubled].Load()))
	if c.beside.Load() != 0 {
		t.Errorf("%d handlers ran beside another of their key", c.beside.Load())
	}
	for f, err := range c.direct.List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if st := f.Record.State; st != store.Completed && st != store.Unknown && st != store.Processing {
			t.Errorf("%q ended as %v", f.Record.Key.Value, st)
		}
	}
}

// A change that is sent again after its reply was lost is applied once.
func TestChange_ReplyLost_SentAgainIsRecognized(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	s := openOn(t, newLosing(t), direct.table, &direct.opt)
	p := proposal("k")
	f, err := s.Claim(t.Context(), p)
	if err != nil || !f.Won {
		t.Fatalf("claim: won %v, error %v", f.Won, err)
	}
	l := f.Record.Lease()
	if errs, err := s.Renew(t.Context(), []store.Lease{l}, time.Hour); err != nil || errs[0] != nil {
		t.Errorf("renew: %v, %v", errs, err)
	}
	step := store.Step{Name: "charge", Outcome: store.Outcome{Body: []byte("1")}}
	if err := s.RecordStep(t.Context(), l, step); err != nil {
		t.Errorf("step: %v", err)
	}
	if err := s.Settle(t.Context(), l, store.Settlement{State: store.Released, Attempt: 1}); err != nil {
		t.Errorf("settle: %v", err)
	}
	next, released := proposal("k"), get(t, direct, "k")
	if f, err = s.Swap(t.Context(), released.Seen(), next); err != nil || !f.Won {
		t.Fatalf("swap: won %v, error %v", f.Won, err)
	}
	if err := s.Settle(t.Context(), f.Record.Lease(), completion("x")); err != nil {
		t.Errorf("settle: %v", err)
	}
	if r := get(t, direct, "k"); r.State != store.Completed || r.Owner != next.Owner {
		t.Errorf("the record is %v", r.State)
	}
}

// A renewal that arrives after a later one does not shorten the lease.
func TestRenew_ArrivesLate_DoesNotShortenLease(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	r := claim(t, direct, "k")
	n := newHolding("UpdateItem")
	s := openOn(t, n.client(t), direct.table, &direct.opt)
	n.hold.Store(true)
	done := make(chan error, 1)
	go func() {
		errs, err := s.Renew(t.Context(), []store.Lease{r.Lease()}, time.Second)
		done <- errors.Join(append(errs, err)...)
	}()
	<-n.held
	if errs, err := direct.Renew(t.Context(), []store.Lease{r.Lease()}, time.Hour); err != nil || errs[0] != nil {
		t.Fatalf("renew: %v, %v", errs, err)
	}
	want := get(t, direct, "k").Until
	close(n.release)
	if err := <-done; err != nil {
		t.Errorf("the late renewal: %v", err)
	}
	if got := get(t, direct, "k").Until; !got.Equal(want) {
		t.Errorf("a late renewal moved the end of the lease from %v to %v", want, got)
	}
}
