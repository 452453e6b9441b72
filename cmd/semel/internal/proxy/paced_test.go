package proxy

import (
	"context"
	"errors"
	"testing"
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

func TestPacedStore_NoPlaceInTime_NotAnswered(t *testing.T) {
	slow := &slowSettles{in: make(chan int, 2), out: make(chan struct{})}
	s := newPacedStore(slow)
	ended := make(chan error, 1)
	go func() { ended <- s.Settle(t.Context(), store.Lease{}, settlement(2*largeAtOnce)) }() // larger than the room is possible, alone
	<-slow.in
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Settle(ctx, store.Lease{}, settlement(largeAnswer+1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	close(slow.out)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
