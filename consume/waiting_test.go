package consume_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// One key whose first message fails must not use up the limit for all.
func TestServe_OneKeyFails_OtherKeysAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		for i := range 300 {
			s.in <- ordered(fmt.Sprint("stuck", i), "stuck")
		}
		var served atomic.Int64
		h := func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
			if m.OrderKey == "stuck" {
				return errPlain
			}
			served.Add(1)
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{}), s)
		pass(time.Second)
		for i := range 500 {
			s.in <- ordered(fmt.Sprint("k", i), fmt.Sprint("lane", i))
		}
		pass(time.Second)
		if n := served.Load(); n != 500 {
			t.Errorf("%d of 500 messages of other keys served", n)
		}
		r.end()
	})
}

// So many waiting messages stop the fetch, so that memory is bounded.
func TestServe_RoomIsFull_TakesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		for i := range 100 {
			s.in <- ordered(fmt.Sprint("stuck", i), "stuck")
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), fails, consume.Options{Concurrency: 2, InFlight: 4, Waiting: 10}), s)
		pass(10 * time.Second)
		if n := 100 - len(s.in); n < 10 || n > 14 {
			t.Errorf("%d messages taken, want 10 to 14", n)
		}
		r.end()
	})
}

// A message that the broker delivers a limited number of times is not taken before
// a handler is free.
func TestServe_BrokerLimitsDeliveries_TakesOnlyWhatCanBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource()
		s.info.DeliveryLimit = 3
		for i := range 20 {
			s.in <- keyed(fmt.Sprint("k", i))
		}
		slow := func(ctx context.Context, _ *semel.Execution, _ *consume.Message) error {
			<-ctx.Done()
			return semel.NoEffect(ctx.Err())
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), slow, consume.Options{Concurrency: 2, Drain: time.Second}), s)
		pass(time.Minute)
		if n := 20 - len(s.in); n != 2 {
			t.Errorf("%d messages taken for 2 handlers", n)
		}
		r.end()
	})
}

// oneKeyFails is a store that answers for all keys except those that begin with
// bad.
type oneKeyFails struct{ store.Store }

func (s oneKeyFails) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if strings.HasPrefix(p.Key.Value, "bad") {
		return store.Found{}, errors.New("the partition is detached")
	}
	return s.Store.Claim(ctx, p)
}

// A store that fails for one key is not down.
func TestOutage_OfOneKey_OtherKeysAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("bad1"), keyed("bad2"))
		var served atomic.Int64
		h := func(context.Context, *semel.Execution, *consume.Message) error {
			served.Add(1)
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, oneKeyFails{memstore.New(nil)}, nil), h, consume.Options{Concurrency: 2, InFlight: 2}), s)
		pass(time.Minute)
		for i := range 50 {
			s.in <- keyed(fmt.Sprint("k", i))
			if i == 25 {
				s.in <- keyed("bad3")
			}
		}
		pass(time.Minute)
		if n := served.Load(); n != 50 {
			t.Errorf("%d of 50 messages of other keys served", n)
		}
		r.end()
		pass(time.Hour) // the undo of the claims ends
	})
}

// A message waits for one of its line that failed and is not revoked, because it is of another
// partition. If its own partition is taken away, the broker must not wait for it.
func TestServe_RevokedBehindOther_GoesBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(ordered("failed", "o"), ordered("behind", "o"), ordered("last", "o"))
		s.revokedOf = map[string]chan struct{}{"behind": make(chan struct{})}
		runs := 0
		h := func(ctxt, *semel.Execution, *consume.Message) error {
			if runs++; runs == 1 {
				return errPlain
			}
			return nil
		}
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), h, consume.Options{Backoff: func(int) time.Duration { return time.Hour }}), s)
		pass(time.Second)
		close(s.revokedOf["behind"])
		pass(time.Second)
		if got := s.heard(); !slices.Equal(got, []string{"nak behind 0s"}) {
			t.Errorf("a second later told %v", got)
		}
		pass(time.Hour)
		if got := s.heard()[1:]; !slices.Equal(got, []string{"ack failed", "ack last"}) {
			t.Errorf("after the pause told %v", got)
		}
		r.end()
	})
}
