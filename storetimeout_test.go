package semel_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// frozen is a store whose named methods give no answer until their context ends.
// They are applied all the same.
func frozen(st store.Store, methods ...string) *hooks {
	answer := func(ctx context.Context, method string, err error) error {
		if !slices.Contains(methods, method) {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
	found := func(ctx context.Context, method string, f store.Found, err error) (store.Found, error) {
		if err = answer(ctx, method, err); err != nil {
			return store.Found{}, err
		}
		return f, nil
	}
	return &hooks{
		Store: st,
		claim: func(ctx context.Context, p store.Proposal) (store.Found, error) {
			f, err := st.Claim(ctx, p)
			return found(ctx, "claim", f, err)
		},
		swap: func(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
			f, err := st.Swap(ctx, seen, p)
			return found(ctx, "swap", f, err)
		},
		get: func(ctx context.Context, k store.Key) (store.Found, error) {
			f, err := st.Get(ctx, k)
			return found(ctx, "get", f, err)
		},
		settle: func(ctx context.Context, l store.Lease, s store.Settlement) error {
			return answer(ctx, "settle", st.Settle(ctx, l, s))
		},
	}
}

// Each method of a Guard returns within StoreTimeout if the store hangs, although
// its caller would wait for ever, and says that the limit is the cause.
func TestStoreHangs_EachMethod_ReturnsWithinStoreTimeout(t *testing.T) {
	ctx := context.Background()
	const limit = 2 * time.Second
	run := func(g *semel.Guard, call semel.Call) error {
		_, err := g.Run(ctx, call, answer("x"))
		return err
	}
	for name, c := range map[string]struct {
		frozen  string
		prepare func(t *testing.T, st store.Store)
		do      func(t *testing.T, g, other *semel.Guard) error
	}{
		"a new call": {"claim", nil, func(_ *testing.T, g, _ *semel.Guard) error { return run(g, ann("k")) }},
		"a takeover": {"swap", func(t *testing.T, st store.Store) { crash(t, st, semel.Retry, "k", 0) },
			func(_ *testing.T, g, _ *semel.Guard) error { return run(g, ann("k")) }},
		"a waiting duplicate": {"get", func(t *testing.T, st store.Store) { crash(t, st, semel.Retry, "k", time.Hour) },
			func(_ *testing.T, g, _ *semel.Guard) error { return run(g, waiting("k", time.Hour)) }},
		"a reservation": {"claim", nil, func(_ *testing.T, g, _ *semel.Guard) error {
			_, err := g.Reserve(ctx, ann("k"))
			return err
		}},
		"a token": {"get", nil, func(t *testing.T, g, other *semel.Guard) error {
			return run(g, redeem(t, g, reserve(t, other, ann("k")).Token))
		}},
		"a look": {"get", nil, func(_ *testing.T, g, _ *semel.Guard) error {
			_, err := g.Get(ctx, ann("k"))
			return err
		}},
		"a verdict": {"swap", func(t *testing.T, st store.Store) { crash(t, st, semel.Park, "k", 0) }, func(t *testing.T, g, other *semel.Guard) error {
			_, err := other.Run(ctx, ann("k"), never(t)) // parks it
			wantErr(t, err, semel.ErrParked)
			return g.Resolve(ctx, record(t, other, "k"), semel.DidNotHappen())
		}},
		"a ping": {"get", nil, func(_ *testing.T, g, _ *semel.Guard) error { return g.Ping(ctx) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := memstore.New(nil)
				if c.prepare != nil {
					c.prepare(t, st)
				}
				g := guard(t, frozen(st, c.frozen), &semel.Options{StoreTimeout: limit, SettleTimeout: limit})
				start := time.Now()
				err := c.do(t, g, guard(t, st, nil))
				if took := time.Since(start); took > limit+time.Second {
					t.Errorf("the caller waited %v; StoreTimeout is %v", took, limit)
				}
				if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, semel.ErrCanceled) {
					t.Errorf("error %v", err)
				}
				if _, isCall := errors.AsType[*semel.Error](err); isCall && !errors.Is(err, semel.ErrUnavailable) {
					t.Errorf("error %v, want ErrUnavailable", err)
				}
				time.Sleep(2 * limit) // until the Guard has given up in the background
			})
		})
	}
}

func TestStoreHangs_CallsMayRunUnprotected_ErrorNamesTheShorterLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for lease, want := range map[time.Duration]string{3 * time.Second: "within a third of Lease, 1s", time.Minute: "within StoreTimeout, 5s"} {
			g := guard(t, frozen(memstore.New(nil), "get"), &semel.Options{UnprotectedOnOutage: true, Lease: lease})
			if _, err := g.Get(t.Context(), ann("k")); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("lease %v: error %v, want %q", lease, err, want)
			}
		}
	})
}

// A claim whose answer does not come may have been granted. The Guard finds out
// when the store answers again, and gives it back.
func TestStoreTimeout_ClaimWasGranted_IsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		h := frozen(st, "claim")
		slow := h.claim
		var thawed atomic.Bool
		h.claim = func(ctx context.Context, p store.Proposal) (store.Found, error) {
			if thawed.Load() {
				return st.Claim(ctx, p)
			}
			return slow(ctx, p)
		}
		g := guard(t, h, nil)
		_, err := g.Run(t.Context(), ann("k"), never(t))
		wantErr(t, err, semel.ErrUnavailable)
		wantState(t, g, "k", store.Processing)
		thawed.Store(true)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if r := wantState(t, g, "k", store.Released); r.Attempt != 0 {
			t.Errorf("attempt %d, want 0, because no handler has started", r.Attempt)
		}
	})
}

// One connection that hangs does not use up SettleTimeout: the settlement is sent
// again, and its caller gets the outcome.
func TestStoreTimeout_OneSettlementHangs_IsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		sent := 0
		h := &hooks{Store: st, settle: func(ctx context.Context, l store.Lease, s store.Settlement) error {
			if sent++; sent == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return st.Settle(ctx, l, s)
		}}
		g := guard(t, h, nil)
		start := time.Now()
		res, err := g.Run(t.Context(), ann("k"), answer("mine"))
		wantBody(t, res, err, "mine", false)
		if took := time.Since(start); sent != 2 || took > 6*time.Second {
			t.Errorf("%d settlements in %v, want 2 within StoreTimeout and a second", sent, took)
		}
	})
}
