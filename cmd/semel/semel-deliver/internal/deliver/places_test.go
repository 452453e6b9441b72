package deliver

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// watchedStore is a store that counts its claims, and in which settlements wait until
// they may go on.
type watchedStore struct {
	store.Store
	claims atomic.Int64
	settle chan struct{} // nil: at once
}

func (w *watchedStore) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	w.claims.Add(1)
	return w.Store.Claim(ctx, p)
}

func (w *watchedStore) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	if w.settle != nil {
		<-w.settle
	}
	return w.Store.Settle(ctx, l, s)
}

// The service never has more requests than Concurrency, and a message that waits for
// its turn has no claim: after a crash it would be in doubt, although it was not sent.
func TestServe_SlowService_HasAtMostConcurrencyRequestsAndClaims(t *testing.T) {
	const concurrency, messages = 3, 30
	st := &watchedStore{Store: memstore.New(nil)}
	var mu sync.Mutex
	var open, most int
	turn := make(chan struct{})
	e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		mu.Lock()
		open++
		most = max(most, open)
		mu.Unlock()
		<-turn
		mu.Lock()
		open--
		mu.Unlock()
	})
	b := newBroker()
	for n := range messages {
		b.publish(fmt.Sprint("k", n), "", "x")
	}
	serve(t, st, b, e.URL, func(o *Options) { o.Concurrency, o.InFlight = concurrency, messages })
	eventually(t, "the service has as many as it may have", func() bool { return len(e.requests()) >= concurrency })
	eventually(t, "all messages are here", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.here == messages })
	if n := st.claims.Load(); n != concurrency {
		t.Errorf("%d messages have a claim, %d were sent", n, concurrency)
	}
	close(turn)
	b.settled(t)
	if most > concurrency {
		t.Errorf("the service had %d requests at once, and may have %d", most, concurrency)
	}
}

// While an answer is being recorded, the next message is sent.
func TestServe_SlowSettlement_NextMessageIsSent(t *testing.T) {
	st := &watchedStore{Store: memstore.New(nil), settle: make(chan struct{})}
	e := newEndpoint(t, answers(200))
	b := newBroker()
	b.publish("a", "", "x")
	b.publish("b", "", "x")
	serve(t, st, b, e.URL, func(o *Options) { o.Concurrency, o.InFlight = 1, 4 })
	eventually(t, "both are sent", func() bool { return len(e.requests()) == 2 })
	if n := b.unsettled(); n != 2 {
		t.Errorf("%d messages are not acked, but none is recorded", n)
	}
	close(st.settle)
	b.settled(t)
}
