package storetest

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

var waitChecks = []check{
	{"a context that ends: Wait ends", waitContext},
	{"a run that ends: Wait ends", waitEnd},
	{"a run that ended before the call: Wait does not block", waitEndedBefore},
	{"a run that goes on: Wait does not return nil again and again", waitQuiet},
}

// waitPatience is twice the time after which a Guard looks by itself, so that a later
// notification is of no use.
const waitPatience = 10 * time.Second

// wait starts Wait, and skips the check if the store has none. The channel gets its error.
func (b *bed) wait(ctx context.Context, seen store.Seen) <-chan error {
	b.Helper()
	w, ok := store.As[store.Waiter](b.st)
	if !ok {
		b.Skip("the store is no store.Waiter")
	}
	done := make(chan error, 1)
	go func() { done <- w.Wait(ctx, seen) }()
	return done
}

// ends fails unless Wait has returned soon. Its error says that the store cannot notify, so
// that the caller polls.
func (b *bed) ends(done <-chan error, after string) {
	b.Helper()
	select {
	case err := <-done:
		if err != nil {
			b.Logf("Wait: %v", err)
		}
	case <-time.After(waitPatience):
		b.Errorf("Wait has not returned %v after %s", waitPatience, after)
	}
}

func waitContext(b *bed) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	r := b.put(key("k"), store.Processing, long)
	done := b.wait(ctx, r.Seen())
	time.Sleep(50 * time.Millisecond) // so that it waits, in most runs
	cancel()
	b.ends(done, "its context ended")
}

func waitEnd(b *bed) {
	r := b.put(key("k"), store.Processing, long)
	done := b.wait(b.Context(), r.Seen())
	time.Sleep(50 * time.Millisecond)
	b.settle(r.Lease(), settlement(store.Completed, long))
	b.ends(done, "the run was completed")
}

func waitEndedBefore(b *bed) {
	r := b.put(key("k"), store.Processing, long)
	b.settle(r.Lease(), settlement(store.Completed, long))
	b.ends(b.wait(b.Context(), r.Seen()), "the call, and the run had ended before")
}

// waitQuiet allows a Wait that returns too early now and then.
func waitQuiet(b *bed) {
	const most = 20
	ctx, cancel := context.WithTimeout(b.Context(), 300*time.Millisecond)
	defer cancel()
	r := b.put(key("k"), store.Processing, long)
	for range most {
		select {
		case err := <-b.wait(ctx, r.Seen()):
			if err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
	b.Errorf("Wait has returned nil %d times within 300 ms, although the run goes on: each caller would read the record as often", most)
}
