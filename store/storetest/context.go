package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel/store"
)

var contextChecks = []check{
	{"a context that ended before the call: an error, and no change", contextOver},
	{"a context that ended before the call: not ErrNotFound", contextNotFound},
	{"a context that ends during the call: all of the change or nothing", contextDuring},
}

// over are contexts that have ended.
func (b *bed) overContexts() map[string]context.Context {
	cancelled, cancel := context.WithCancel(b.Context())
	cancel()
	late, stop := context.WithDeadline(b.Context(), time.Unix(1, 0))
	b.Cleanup(stop)
	return map[string]context.Context{"cancelled": cancelled, "past its deadline": late}
}

func contextOver(b *bed) {
	free := key("free")
	held := b.put(key("held"), store.Processing, long)
	b.put(key("expired"), store.Completed, b.short())
	expired := b.outlive(key("expired")).Record
	for name, ctx := range b.overContexts() {
		refused := func(method string, err error) {
			b.Helper()
			if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrLeaseLost) || errors.Is(err, store.ErrCorrupt) {
				b.Errorf("%s with a context that is %s: error %v, want one that says so", method, name, err)
			}
		}
		f, err := b.st.Claim(ctx, proposal(free, store.Processing))
		refused("Claim", err)
		if f.Won {
			b.Errorf("Claim with a context that is %s says that it won", name)
		}
		f, err = b.st.Swap(ctx, held.Seen(), proposal(held.Key, store.Processing))
		refused("Swap", err)
		if f.Won {
			b.Errorf("Swap with a context that is %s says that it won", name)
		}
		errs, err := b.st.Renew(ctx, []store.Lease{held.Lease()}, 2*long)
		if err == nil && len(errs) == 1 {
			err = errs[0]
		}
		refused("Renew", err)
		refused("Settle", b.st.Settle(ctx, held.Lease(), settlement(store.Completed, long)))
		_, err = b.st.Get(ctx, held.Key)
		refused("Get", err)
		_, err = b.st.Sweep(ctx, "", 10)
		refused("Sweep", err)
		b.absent(free)
		b.unchanged(held)
		b.unchanged(expired)
	}
}

func contextNotFound(b *bed) {
	for name, ctx := range b.overContexts() {
		if _, err := b.st.Get(ctx, key("absent")); err == nil || errors.Is(err, store.ErrNotFound) {
			b.Errorf("Get with a context that is %s: error %v; it knows nothing of absence", name, err)
		}
		p := proposal(key("absent"), store.Processing)
		if _, err := b.st.Swap(ctx, store.Seen{Key: p.Key}, p); err == nil || errors.Is(err, store.ErrNotFound) {
			b.Errorf("Swap with a context that is %s: error %v; it knows nothing of absence", name, err)
		}
	}
}

// contextDuring cancels calls at random moments. Whatever the call returns, a
// read finds all of the change or none of it, and the same call sent again makes
// sure of it.
func contextDuring(b *bed) {
	for i := range 40 {
		p := proposal(key("during"+string(rune('a'+i))), store.Processing)
		ctx, cancel := context.WithCancel(b.Context())
		go cancel()
		f, err := b.st.Claim(ctx, p)
		if err == nil && !f.Won {
			b.Errorf("a cancelled claim of a new key found another's record")
		}
		first, getErr := b.st.Get(b.Context(), p.Key)
		if err == nil && getErr != nil {
			b.Errorf("a claim that was answered left no record: %v", getErr)
		}
		again := b.claim(p)
		if getErr == nil {
			if d := diff(first.Record, again.Record); d != "" {
				b.Errorf("a cancelled claim, sent again, gave another record: %s", d)
			}
		}
		if d := inserted(&p, again.Record); d != "" {
			b.Errorf("a cancelled claim, sent again: %s", d)
		}
	}
}
