package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/store"
)

// benchLeases is how many leases one renewal of the benchmark has.
const benchLeases = 100

// Bench measures the store that h opens, with 1, 16 and 64 goroutines:
//
//   - new: claim a new key and settle it, two calls an operation
//   - duplicate: claim a key that is completed
//   - mixed: claims, every second of them a duplicate; a claim that wins is settled
//   - renew: renew 100 leases in one call
//
// Run it with -benchmem. It uses only Harness.Open.
func Bench(b *testing.B, h Harness) {
	b.Helper()
	if h.Open == nil {
		b.Fatal("storetest: Harness.Open is nil; set it to a function that makes an empty store")
	}
	for _, c := range []struct {
		name  string
		setup func(b *testing.B, st store.Store, goroutines int) func(i int) error
	}{
		{"new", benchNew}, {"duplicate", benchDuplicate}, {"mixed", benchMixed}, {"renew", benchRenew},
	} {
		for _, goroutines := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/%d", c.name, goroutines), func(b *testing.B) {
				op := c.setup(b, h.Open(b), goroutines)
				b.ReportAllocs()
				b.ResetTimer()
				spread(b, goroutines, op)
			})
		}
	}
}

// spread runs b.N operations on the given number of goroutines.
func spread(b *testing.B, goroutines int, op func(i int) error) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := op(int(i)); err != nil {
					b.Errorf("operation %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// benchOutcome is about the size of a small answer in JSON.
var benchOutcome = store.Outcome{
	Code: 201, Codec: "json", Body: []byte(`{"id":"pay_2f8c1d7e","amount":1299,"currency":"EUR","status":"captured"}`),
	Header: []store.Header{{Name: "Content-Type", Value: "application/json"}},
}

func benchClaim(b *testing.B, st store.Store, value string) (store.Found, error) {
	return st.Claim(b.Context(), proposal(key(value), store.Processing))
}

func benchSettle(b *testing.B, st store.Store, f *store.Found) error {
	return st.Settle(b.Context(), f.Record.Lease(), store.Settlement{State: store.Completed, Attempt: 1, Outcome: benchOutcome, Keep: long})
}

func benchNew(b *testing.B, st store.Store, _ int) func(i int) error {
	return func(i int) error {
		f, err := benchClaim(b, st, strconv.Itoa(i))
		if err != nil || !f.Won {
			return fmt.Errorf("claim of a new key: won %v, error %w", f.Won, err)
		}
		return benchSettle(b, st, &f)
	}
}

func benchDuplicate(b *testing.B, st store.Store, _ int) func(i int) error {
	const keys = 100
	completed := benchNew(b, st, 1)
	pack(keys, func(i int) {
		if err := completed(i); err != nil {
			b.Error(err)
		}
	})
	return func(i int) error {
		f, err := benchClaim(b, st, strconv.Itoa(i%keys))
		if err != nil || f.Won || f.Record.State != store.Completed {
			return fmt.Errorf("claim of a completed key: won %v, %v, error %w", f.Won, f.Record.State, err)
		}
		return nil
	}
}

func benchMixed(b *testing.B, st store.Store, _ int) func(i int) error {
	return func(i int) error {
		f, err := benchClaim(b, st, strconv.Itoa(i/2))
		if err != nil || !f.Won {
			return err
		}
		return benchSettle(b, st, &f)
	}
}

// benchRenew gives each goroutine leases of its own, as each process has them.
func benchRenew(b *testing.B, st store.Store, goroutines int) func(i int) error {
	free := make(chan []store.Lease, goroutines)
	pack(goroutines, func(set int) {
		held := make([]store.Lease, benchLeases)
		for i := range held {
			f, err := benchClaim(b, st, fmt.Sprint(set, "/", i))
			if err != nil {
				b.Error(err)
			}
			held[i] = f.Record.Lease()
		}
		free <- held
	})
	return func(int) error {
		held := <-free
		defer func() { free <- held }()
		errs, err := st.Renew(b.Context(), held, long)
		return errors.Join(append(errs, err)...)
	}
}
