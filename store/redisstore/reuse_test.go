package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// stepHook lets commands go one at a time, when the test says so.
type stepHook struct {
	gateHook
	begun, step chan struct{}
}

func (h *stepHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" && len(cmd.Args()) > 8 { // not a read
			h.begun <- struct{}{}
			<-h.step
		}
		return next(ctx, cmd)
	}
}

// If a caller leaves while its call is in flight, the flush still uses the call, so
// that no other caller may reuse it.
func TestCall_CallerLeftInFlight_IsNotReused(t *testing.T) {
	s := openNew(t, &Options{Flushers: 1})
	complete(t, s, "first", "x")
	h := &stepHook{begun: make(chan struct{}, 10), step: make(chan struct{})}
	s.client.AddHook(h)
	var all sync.WaitGroup
	all.Go(func() { claim(t, s, "in front") })
	<-h.begun
	ctx, leave := context.WithCancel(t.Context())
	left := proposal("left")
	gone := make(chan error, 1)
	go func() {
		_, err := s.Claim(ctx, left)
		gone <- err
	}()
	all.Go(func() { claim(t, s, "stays") })
	waitFor(t, "both are queued", func() bool { return s.changes.queued() == 2 })
	h.step <- struct{}{}
	<-h.begun // both are in flight
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller who left got %v", err)
	}
	for range 100 {
		get(t, s, "first") // takes calls, and gives them back
	}
	h.step <- struct{}{}
	all.Wait()
	if got := get(t, s, "left"); got.Owner != left.Owner || got.Fingerprint != left.Fingerprint {
		t.Errorf("it is %+v, and was to be %+v", got, left)
	}
}
