package storetest

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// manual is a store with a clock that stands still unless it is advanced.
type manual struct {
	store.Store
	micros *atomic.Int64
}

func (m manual) Unwrap() store.Store { return m.Store }

// noon is where manual clocks begin.
const noon = int64(1_795_176_000_000_000)

func manualModel() manual {
	c := new(atomic.Int64)
	c.Store(noon)
	return manual{newModel(c.Load), c}
}

func manualMemory() manual {
	c := new(atomic.Int64)
	c.Store(noon)
	return manual{memstore.New(&memstore.Options{Now: func() time.Time { return time.UnixMicro(c.Load()) }}), c}
}

func advance(_ testing.TB, s store.Store, d time.Duration) {
	m, _ := store.As[manual](s)
	m.micros.Add(d.Microseconds())
}

func beginModel(_ testing.TB, s store.Store) Tx {
	m, _ := store.As[*model](s)
	return m.begin()
}

func TestRun_Model_Passes(t *testing.T) {
	Run(t, Harness{
		Open:    func(testing.TB) store.Store { return manualModel() },
		Advance: advance,
		Begin:   beginModel,
		Reopen:  func(_ testing.TB, s store.Store) store.Store { return s },
	})
}

func TestRun_OutcomesHiddenAndRecordsShown_Passes(t *testing.T) {
	h := mutantHarness(mutant{make: hides(func(f store.Found) (store.Found, error) { return f, errHidden })})
	runChecks(t, &h, recordChecks)
}

// realTime is a store whose clock runs, and can be moved all the same.
type realTime struct {
	store.Store
	offset *atomic.Int64
}

func TestRun_RunningClockIsMoved_Passes(t *testing.T) {
	Run(t, Harness{
		Open: func(testing.TB) store.Store {
			o := new(atomic.Int64)
			return realTime{memstore.New(&memstore.Options{Now: func() time.Time { return time.Now().Add(time.Duration(o.Load())) }}), o}
		},
		Advance: func(_ testing.TB, s store.Store, d time.Duration) { s.(realTime).offset.Add(int64(d)) },
	})
}

func TestRun_DeclaredSkew_Passes(t *testing.T) {
	Run(t, Harness{
		Open:      func(testing.TB) store.Store { return manualMemory() },
		Advance:   advance,
		Skew:      time.Second,
		Histories: 50,
	})
	t.Run("in real time", func(t *testing.T) {
		Run(t, Harness{
			Open:      func(testing.TB) store.Store { return memstore.New(nil) },
			Skew:      5 * time.Millisecond,
			Histories: 50,
		})
	})
}

// A network that sends twice, or loses replies so that callers send again,
// must not be seen by a caller: each change of a store is one that can be
// sent again.
func TestRun_NetworkSendsTwice_Passes(t *testing.T) {
	open := func(testing.TB) store.Store {
		return NewFault(manualMemory(), func(op Op, _ int) Mode {
			if op == OpSweep {
				return None
			}
			return Twice
		})
	}
	Run(t, Harness{Open: open, Advance: advance})
}

// resender sends again what it has no answer to, as often as it takes.
type resender struct{ store.Store }

func (r resender) Unwrap() store.Store { return r.Store }

func again[T any](call func() (T, error)) (T, error) {
	for {
		if t, err := call(); !errors.Is(err, ErrInjected) {
			return t, err
		}
	}
}

func (r resender) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	return again(func() (store.Found, error) { return r.Store.Claim(ctx, p) })
}

func (r resender) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	return again(func() (store.Found, error) { return r.Store.Swap(ctx, seen, p) })
}

func (r resender) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	return again(func() ([]error, error) { return r.Store.Renew(ctx, held, d) })
}

func (r resender) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	_, err := again(func() (struct{}, error) { return struct{}{}, r.Store.Settle(ctx, l, s) })
	return err
}

func (r resender) Get(ctx context.Context, k store.Key) (store.Found, error) {
	return again(func() (store.Found, error) { return r.Store.Get(ctx, k) })
}

func TestRun_CallerSendsAgain_Passes(t *testing.T) {
	var opened atomic.Uint64
	open := func(testing.TB) store.Store {
		chance := Chance(opened.Add(1), 0.4, Before, LostReply, LostReply, Twice)
		return resender{NewFault(manualMemory(), func(op Op, n int) Mode {
			if op == OpSweep { // its answer counts what it did
				return None
			}
			return chance(op, n)
		})}
	}
	Run(t, Harness{Open: open, Advance: advance})
}

// TestCampaign_ManyHistories_AgreeWithModel compares the memory store with the model.
func TestCampaign_ManyHistories_AgreeWithModel(t *testing.T) {
	n := 20_000
	switch {
	case os.Getenv("SEMEL_EVIDENCE") == "1":
		n = 100_000
	case raceEnabled && testing.Short():
		n = 500
	case raceEnabled, testing.Short():
		n = 5000
	}
	manyHistories(t, n, 50, newPair)
}

// newPair is a memory store beside a model, on one clock.
func newPair() *arena {
	mem, mod := manualMemory(), manualModel()
	return &arena{
		sides:  []*side{{name: "model", st: mod.Store}, {name: "memory store", st: mem.Store}},
		times:  exactTimes,
		like:   comparison{times: true, fences: true},
		floors: true,
		advance: func(d time.Duration) {
			mem.micros.Add(d.Microseconds())
			mod.micros.Add(d.Microseconds())
		},
	}
}
