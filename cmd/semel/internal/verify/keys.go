package verify

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/semel-go/semel/store"
)

var keysCheck = check{
	name:  "keys",
	claim: "Keys that differ in one byte, in the tenant or in the operation never meet.",
	run: func(ctx context.Context, p *probe) error {
		keys := p.oddKeys()
		made := make([]*store.Record, len(keys))
		for i, k := range keys {
			f, err := p.store(i).Claim(ctx, p.proposal(k, store.Processing))
			if err != nil {
				return err
			}
			p.tried(1)
			switch {
			case !f.Won:
				p.broken("the key %.60q of tenant %q and operation %q is taken for another: %.60q", k.Value, k.Tenant, k.Operation, f.Record.Key.Value)
			case f.Record.Key != k:
				p.broken("the key %.60q comes back as %.60q", k.Value, f.Record.Key.Value)
			default:
				made[i] = &f.Record
			}
		}
		for i, r := range made {
			if r == nil {
				continue
			}
			p.tried(1)
			if err := p.unchanged(ctx, i+1, r); err != nil {
				return err
			}
		}
		return nil
	},
}

// oddKeys are all different: families of values that a store might mix up,
// and equal values of other tenants and operations.
func (p *probe) oddKeys() []store.Key {
	long := strings.Repeat("k", 254)
	values := []string{
		"a", "A", "a ", " a", "a\x00", "a\x00b", "\x00", "a%", "a_", "%", "_", "a'", `a"`, `a\`, "a;--", "a/", "a:", "a:b", "a\n", "a\r\n", "a\t",
		"é", "e\u0301", "\xe9", "É", "ß", "SS", "ss", "ı", "i", "I", "İ", "K", "\u212a", "\ufeff", "\u200b", "\u202e", "😀", "\xff", "\xfe\xff", "\xc0\x80", "1", "01", "1.0", "+1", "1e0", "NULL", "null", "{}", "$1",
		"?", "a?b", "*", "[a]", "{a}", "{b}", "semel", long + "a", long + "b", strings.Repeat("\x00", 255), strings.Repeat("é", 127),
	}
	var keys []store.Key
	for _, v := range values {
		keys = append(keys, p.own(store.Key{Operation: Operation, Tenant: p.tenant, Value: v}))
	}
	for _, v := range []string{"a", "é", long + "a"} {
		keys = append(keys,
			p.own(store.Key{Operation: Operation, Tenant: p.tenant + "A", Value: v}),
			p.own(store.Key{Operation: Operation, Tenant: p.tenant + "a", Value: v}),
			p.own(store.Key{Operation: otherOperation, Tenant: p.tenant, Value: v}))
	}
	// Put together without lengths these would be one.
	return append(keys,
		p.own(store.Key{Operation: Operation, Tenant: p.tenant + ":x", Value: "y"}),
		p.own(store.Key{Operation: Operation, Tenant: p.tenant, Value: "x:y"}),
		p.own(store.Key{Operation: Operation, Tenant: p.tenant + "x", Value: "y"}),
		p.own(store.Key{Operation: Operation, Tenant: p.tenant, Value: "xy"}))
}

// pack runs n functions at once, waits for all, and joins their errors.
func pack(n int, fn func(i int) error) error {
	var wg sync.WaitGroup
	gate, errs := make(chan struct{}), make([]error, n)
	for i := range n {
		wg.Go(func() {
			<-gate
			errs[i] = fn(i)
		})
	}
	close(gate)
	wg.Wait()
	return first(errs)
}

// each runs fn for 0 to n-1, at most wide calls at the same time. It serves work
// that is no race, but is faster in parallel.
func each(ctx context.Context, n, wide int, fn func(i int) error) error {
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range n {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	err := pack(min(n, wide), func(int) error {
		var errs []error
		for i := range next {
			errs = append(errs, fn(i))
		}
		return first(errs)
	})
	return errors.Join(ctx.Err(), err)
}

// first returns the first error, because a store that is down gives the same error
// to all calls.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
