package semel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// 400 handlers need one round trip for their renewals each third of the lease.
func TestRenewal_ManyHandlers_OneRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		trips, leases := 0, 0
		h := &hooks{Store: st}
		h.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
			trips++
			leases += len(held)
			return st.Renew(ctx, held, d)
		}
		g := guard(t, h, nil)
		for i := range 400 {
			go func() {
				_, err := g.Run(t.Context(), ann(fmt.Sprint(i)), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
					time.Sleep(25 * time.Second)
					return store.Outcome{}, ctx.Err()
				})
				if err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if trips != 2 || leases != 800 {
			t.Errorf("%d round trips for %d renewals; want 2 for 800", trips, leases)
		}
	})
}

// The store hangs at the renewal of one lease and ignores its context. The leases in
// the same batch and the leases that are due later are renewed all the same.
func TestRenewal_OneLeaseHangs_OthersAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooks{Store: memstore.New(nil)}
		var asked atomic.Int32
		h.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
			for _, l := range held {
				if l.Key.Value == "bad" {
					asked.Add(1)
					time.Sleep(24 * time.Hour)
				}
			}
			return h.Store.Renew(ctx, held, d)
		}
		g := guard(t, h, nil)
		run := func(key string, lasts time.Duration, want error) {
			_, err := g.Run(t.Context(), ann(key), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
				select {
				case <-ctx.Done():
				case <-time.After(lasts):
				}
				return store.Outcome{}, context.Cause(ctx)
			})
			if !errors.Is(err, want) {
				t.Errorf("the call %q got %v, want %v", key, err, want)
			}
		}
		var all sync.WaitGroup
		all.Go(func() { run("bad", time.Hour, semel.ErrLeaseLost) })
		all.Go(func() { run("same batch", 10*time.Minute, nil) })
		time.Sleep(12 * time.Second)
		all.Go(func() { run("later", 10*time.Minute, nil) })
		all.Wait()
		if n := asked.Load(); n > 2 {
			t.Errorf("%d renewals of the hanging lease, want at most 2", n)
		}
		time.Sleep(25 * time.Hour)
	})
}

// Rule 7: a renewal that hangs is given up, so that the next one is sent in time.
func TestRenewal_Hangs_IsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooks{Store: memstore.New(nil)}
		n := 0
		h.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
			if n++; n == 1 {
				start := time.Now()
				<-ctx.Done()
				if took := time.Since(start); took > 5700*time.Millisecond {
					t.Errorf("given up after %v of a 30 s lease, want at most 5.7 s, so that two more renewals are possible", took)
				}
				return nil, ctx.Err()
			}
			return h.Store.Renew(ctx, held, d)
		}
		res, err := guard(t, h, nil).Run(t.Context(), ann("k"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
			time.Sleep(10 * time.Minute)
			return store.Outcome{Body: []byte("slow")}, context.Cause(ctx)
		})
		wantBody(t, res, err, "slow", false)
	})
}

func TestRenewal_StoreHangsBriefly_NoLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		h := &hooks{Store: st}
		var hangUntil time.Time
		h.renew = func(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
			if time.Now().Before(hangUntil) { // each request is lost during the outage
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return st.Renew(ctx, held, d)
		}
		g := guard(t, h, nil)
		for _, outage := range []time.Duration{11 * time.Second, 20500 * time.Millisecond} { // the first renewals are due after 10 s
			hangUntil = time.Now().Add(outage)
			var lost atomic.Int64
			var all sync.WaitGroup
			for i := range 1500 {
				all.Go(func() {
					_, _ = g.Run(t.Context(), ann(fmt.Sprint(outage, i)), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
						select {
						case <-ctx.Done():
							lost.Add(1)
						case <-time.After(40 * time.Second):
						}
						return store.Outcome{}, nil
					})
				})
			}
			all.Wait()
			if n := lost.Load(); n > 0 {
				t.Errorf("the store hung until %v of a 30 s lease: %d of 1500 leases were lost", outage, n)
			}
		}
	})
}
