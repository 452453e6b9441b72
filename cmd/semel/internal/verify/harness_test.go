package verify

import (
	"context"
	"io"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// small are options of a run that tries everything, a little.
func small(only ...string) Options {
	return Options{Only: only, Keys: 12, Parallel: 4, Processes: 2, Body: 100_000, Seed: 1, Limit: time.Minute}
}

// sick is a memory store with faults. A nil field means no fault.
type sick struct {
	*memstore.Store
	claim  func(context.Context, store.Proposal) (store.Found, error)
	swap   func(context.Context, store.Seen, store.Proposal) (store.Found, error)
	renew  func(context.Context, []store.Lease, time.Duration) ([]error, error)
	settle func(context.Context, store.Lease, store.Settlement) error
	get    func(context.Context, store.Key) (store.Found, error)
	sweep  func(context.Context, store.Cursor, int) (store.SweepResult, error)
	list   func(context.Context, store.Filter) iter.Seq2[store.Found, error]
	check  func(context.Context) error
}

func (s *sick) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if s.claim != nil {
		return s.claim(ctx, p)
	}
	return s.Store.Claim(ctx, p)
}

func (s *sick) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if s.swap != nil {
		return s.swap(ctx, seen, p)
	}
	return s.Store.Swap(ctx, seen, p)
}

func (s *sick) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	if s.renew != nil {
		return s.renew(ctx, held, d)
	}
	return s.Store.Renew(ctx, held, d)
}

func (s *sick) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	if s.settle != nil {
		return s.settle(ctx, l, t)
	}
	return s.Store.Settle(ctx, l, t)
}

func (s *sick) Get(ctx context.Context, k store.Key) (store.Found, error) {
	if s.get != nil {
		return s.get(ctx, k)
	}
	return s.Store.Get(ctx, k)
}

func (s *sick) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	if s.sweep != nil {
		return s.sweep(ctx, from, limit)
	}
	return s.Store.Sweep(ctx, from, limit)
}

func (s *sick) List(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	if s.list != nil {
		return s.list(ctx, f)
	}
	return s.Store.List(ctx, f)
}

func (s *sick) Check(ctx context.Context) error {
	if s.check != nil {
		return s.check(ctx)
	}
	return nil
}

// targetOf is st, opened twice, with workers that are goroutines.
func targetOf(sts ...store.Store) Target {
	if len(sts) == 1 {
		sts = append(sts, sts[0])
	}
	return Target{Name: "test", Stores: sts, Start: func(ctx context.Context, tenant string) (*Worker, error) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		end := make(chan error, 1)
		go func() {
			err := Work(ctx, sts[0], tenant, 3, inR, outW)
			_ = outW.Close()
			end <- err
		}()
		return &Worker{In: inW, Out: outR, Wait: func() error { return <-end }}, nil
	}}
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// left are the records of a store that are of operation semel-verify.
func left(t *testing.T, l store.Lister) (keys []store.Key) {
	t.Helper()
	for _, op := range []string{Operation, otherOperation} {
		for f, err := range l.List(context.Background(), store.Filter{Operation: op}) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, f.Record.Key)
		}
	}
	return keys
}
