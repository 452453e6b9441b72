package semel

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel/store/memstore"
)

// While a machine is suspended, its monotonic clock and its timers stand still. When it goes
// on, the wall clock is right, and another worker may have taken over.
func TestLease_MachineWasSuspended_IsLost(t *testing.T) {
	for suspended, want := range map[time.Duration]bool{-time.Hour: true, 0: true, 24 * time.Second: true, 25 * time.Second: false, time.Hour: false} {
		for _, asks := range []string{"a step", "the heartbeat", "an end that the context names"} {
			var h heartbeat
			h.init(memstore.New(nil), 30*time.Second)
			h.stopRenewing = func() {} // a renewal is under way, so that no other one is sent
			var cause error
			r := &renewal{cancel: func(err error) { cause = err }}
			sent := now()
			if sent.wall -= suspended; asks == "an end that the context names" {
				r.end = sent.add(25 * time.Second)
				sent = now()
			}
			h.add(r, sent)
			if asks == "the heartbeat" {
				h.check()
			}
			if got := h.holds(r); got != want || !got && !errors.Is(cause, ErrLeaseLost) {
				t.Errorf("suspended for %v, asked by %s: it holds: %v, cause %v", suspended, asks, got, cause)
			}
			h.remove(r)
		}
	}
}

// A handler does not start if the machine was suspended while the claim was on its way.
func TestLease_MachineWasSuspendedDuringClaim_IsOver(t *testing.T) {
	var h heartbeat
	h.init(memstore.New(nil), 30*time.Second)
	sent := now()
	granted := sent
	if granted.wall += time.Minute; !h.isOver(sent, granted) {
		t.Error("the claim counts")
	}
	if granted.since(sent) != 0 {
		t.Error("an event has taken as long as the machine was suspended")
	}
}

func TestLease_WallClockIsSetBack_IsLostAllTheSame(t *testing.T) {
	var h heartbeat
	h.init(memstore.New(nil), 30*time.Second)
	sent := now()
	later := instant{sent.mono + 25*time.Second, sent.wall - time.Hour}
	if !h.isOver(sent, later) {
		t.Error("the lease has no end")
	}
}
