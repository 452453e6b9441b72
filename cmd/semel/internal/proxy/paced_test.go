package proxy

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
)

// slowSettles is a store whose settlements wait until they are let out.
type slowSettles struct {
	store.Store
	in  chan int // sizes of the answers
	out chan struct{}
}

func (s *slowSettles) Settle(_ context.Context, _ store.Lease, as store.Settlement) error {
	s.in <- len(as.Outcome.Body)
	<-s.out
	return nil
}

func settlement(size int) store.Settlement {
	return store.Settlement{State: store.Completed, Outcome: store.Outcome{Body: make([]byte, size)}}
}

func TestPacedStore_ManyLargeAnswers_SmallOnePasses(t *testing.T) {
	slow := &slowSettles{in: make(chan int, 16), out: make(chan struct{})}
	s := newPacedStore(slow)
	ended := make(chan error, 16)
	for range 8 { // one at a time, because each has more than half of the room
		go func() { ended <- s.Settle(t.Context(), store.Lease{}, settlement(largeAtOnce/2+1)) }()
	}
	if n := <-slow.in; n != largeAtOnce/2+1 {
		t.Fatalf("an answer of %d bytes came first", n)
	}
	go func() { ended <- s.Settle(t.Context(), store.Lease{}, settlement(largeAnswer)) }()
	if n := <-slow.in; n != largeAnswer {
		t.Errorf("an answer of %d bytes came beside a large one", n)
	}
	close(slow.out)
	for range 9 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if n := len(slow.in); n != 7 {
		t.Errorf("%d of the other 7 large answers came", n)
	}
}

// A settlement that waits for a place must not lose the time in which the store can answer
// it: an answer that is not stored has a second effect.
func TestPacedStore_NoPlaceInTime_StoredWithoutPlace(t *testing.T) {
	for storeTimeout, want := range map[time.Duration]time.Duration{
		5 * time.Second:  time.Second, // the default
		time.Second:      250 * time.Millisecond,
		time.Millisecond: 250 * time.Microsecond, // the shortest
	} {
		t.Run(storeTimeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := &slowSettles{in: make(chan int, 2), out: make(chan struct{})}
				s := newPacedStore(slow)
				var all sync.WaitGroup
				all.Go(func() { _ = s.Settle(t.Context(), store.Lease{}, settlement(2*largeAtOnce)) }) // larger than the room is possible, alone
				<-slow.in
				ctx, cancel := context.WithTimeout(t.Context(), storeTimeout)
				defer cancel()
				begun := time.Now()
				all.Go(func() {
					if err := s.Settle(ctx, store.Lease{}, settlement(largeAnswer+1)); err != nil {
						t.Errorf("the store did not get the answer: %v", err)
						slow.in <- 0
					}
				})
				<-slow.in
				if waited := time.Since(begun); waited != want {
					t.Errorf("the store has the answer after %v, want %v", waited, want)
				}
				close(slow.out)
				all.Wait()
				if !s.large.TryAcquire(largeAtOnce) {
					t.Error("a place is not given back")
				}
			})
		})
	}
}

func TestPacedStore_CallerGone_NotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowSettles{in: make(chan int, 2), out: make(chan struct{})}
		s := newPacedStore(slow)
		ended := make(chan error, 1)
		go func() { ended <- s.Settle(t.Context(), store.Lease{}, settlement(largeAtOnce)) }()
		<-slow.in
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Settle(ctx, store.Lease{}, settlement(largeAnswer+1)); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that the context has ended", err)
		}
		close(slow.out)
		<-ended
	})
}
