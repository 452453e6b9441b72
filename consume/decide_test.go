package consume_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store"
)

var errPlain = errors.New("plain")

func said(reason error) error { return &semel.Error{Reason: reason, Operation: "op"} }

// The table of the package's documentation, row by row.
func TestDecideIsTheTable(t *testing.T) {
	failure := &semel.Failure{Code: "declined", Message: "no"}
	for _, c := range []struct {
		name   string
		run    consume.Run
		action consume.Action
		reason consume.Reason
	}{
		{"success", consume.Run{Attempt: 1}, consume.Ack, consume.ReasonDone},
		{"a duplicate", consume.Run{Replayed: true}, consume.Ack, consume.ReasonDuplicate},
		{"a failure", consume.Run{Err: failure, Handlers: true, Attempt: 1}, consume.DeadLetter, consume.ReasonFailed},
		{"a wrapped failure", consume.Run{Err: fmt.Errorf("x: %w", failure), Attempt: 1}, consume.DeadLetter, consume.ReasonFailed},
		{"a replayed failure", consume.Run{Err: failure, Replayed: true}, consume.DeadLetter, consume.ReasonFailed},
		{"no attempt left", consume.Run{Err: &semel.Failure{Code: semel.CodeAttemptsExhausted}}, consume.DeadLetter, consume.ReasonExhausted},
		{"a plain error", consume.Run{Err: errPlain, Handlers: true, Attempt: 1}, consume.Retry, consume.ReasonError},
		{"no effect", consume.Run{Err: semel.NoEffect(errPlain), Handlers: true, Attempt: 1}, consume.Retry, consume.ReasonError},
		{"a failure without effect", consume.Run{Err: semel.NoEffect(failure), Handlers: true, Attempt: 1}, consume.Retry, consume.ReasonError},
		{"parked", consume.Run{Err: said(semel.ErrParked)}, consume.Park, consume.ReasonUnknown},
		{"mismatch", consume.Run{Err: said(semel.ErrMismatch)}, consume.DeadLetter, consume.ReasonMismatch},
		{"in progress", consume.Run{Err: said(semel.ErrInProgress)}, consume.Hold, consume.ReasonInProgress},
		{"released", consume.Run{Err: said(semel.ErrReleased)}, consume.Hold, consume.ReasonInProgress},
		{"lease lost", consume.Run{Err: said(semel.ErrLeaseLost), Attempt: 1}, consume.Hold, consume.ReasonLeaseLost},
		{"unavailable", consume.Run{Err: said(semel.ErrUnavailable)}, consume.Hold, consume.ReasonUnavailable},
		{"a transaction that did not commit", consume.Run{Err: said(semel.ErrUnavailable), Attempt: 1}, consume.Retry, consume.ReasonError},
		{"a corrupt record", consume.Run{Err: &semel.Error{Reason: store.ErrCorrupt}}, consume.Park, consume.ReasonCorrupt},
		{"not stored", consume.Run{Err: said(semel.ErrOutcomeNotStored), Attempt: 1}, consume.Ack, consume.ReasonDoneButNotStored},
		{"a failure not stored", consume.Run{Err: &semel.Error{Reason: semel.ErrOutcomeNotStored, Cause: failure}}, consume.DeadLetter, consume.ReasonFailed},
		{"not kept", consume.Run{Err: said(semel.ErrNotKept), Replayed: true}, consume.Ack, consume.ReasonDuplicate},
		{"unverifiable", consume.Run{Err: said(semel.ErrUnverifiable)}, consume.Park, consume.ReasonUnverifiable},
		{"invalid", consume.Run{Err: said(semel.ErrInvalid)}, consume.DeadLetter, consume.ReasonInvalid},
		{"expired", consume.Run{Err: said(semel.ErrExpired)}, consume.DeadLetter, consume.ReasonExpired},
		{"no key", consume.Run{Err: fmt.Errorf("x: %w", consume.ErrNoKey)}, consume.DeadLetter, consume.ReasonNoKey},
		{"rejected", consume.Run{Err: consume.ErrRejected}, consume.Hold, consume.ReasonRejected},
		{"a handler that says so", consume.Run{Err: consume.ErrNoKey, Handlers: true, Attempt: 1}, consume.Retry, consume.ReasonError},
		{"changed", consume.Run{Err: said(store.ErrChanged)}, consume.DeadLetter, consume.ReasonInvalid},
	} {
		d := consume.Decide(c.run, nil)
		if d.Action != c.action || d.Reason != c.reason {
			t.Errorf("%s: %v for %q, want %v for %q", c.name, d.Action, d.Reason, c.action, c.reason)
		}
		if !errors.Is(d.Err, c.run.Err) || d.Attempt != c.run.Attempt {
			t.Errorf("%s: the disposition has attempt %d and error %v", c.name, d.Attempt, d.Err)
		}
		if (d.Action == consume.Hold || d.Action == consume.Retry) != (d.Delay > 0) {
			t.Errorf("%s: %v after %v", c.name, d.Action, d.Delay)
		}
	}
}

// A handler makes calls of its own. What those were told is not said of the
// message: a mismatch there must not dead-letter it, a park not park it.
func TestAnErrorOfTheHandlersOwnCallsIsAPlainError(t *testing.T) {
	for _, reason := range []error{
		semel.ErrMismatch, semel.ErrParked, semel.ErrInProgress, semel.ErrUnavailable, semel.ErrInvalid, semel.ErrOutcomeNotStored, semel.ErrNotKept,
	} {
		if d := consume.Decide(consume.Run{Err: said(reason), Handlers: true, Attempt: 1}, nil); d.Action != consume.Retry {
			t.Errorf("%v from the handler: %v", reason, d.Action)
		}
	}
}

func TestAckFailuresAcksResultsAndNotExhaustion(t *testing.T) {
	o := &consume.Options{AckFailures: true}
	if d := consume.Decide(consume.Run{Err: semel.Final(errPlain)}, o); d.Action != consume.Ack {
		t.Errorf("a failure: %v, want ack", d.Action)
	}
	if d := consume.Decide(consume.Run{Err: &semel.Failure{Code: semel.CodeAttemptsExhausted}}, o); d.Action != consume.DeadLetter {
		t.Errorf("attempts exhausted: %v, want dead-letter", d.Action)
	}
}

func TestAHoldLooksAgainSoonAndThenLessOften(t *testing.T) {
	last := time.Duration(0)
	for tries := range 30 {
		d := consume.Decide(consume.Run{Err: said(semel.ErrInProgress), Tries: tries}, nil)
		if d.Delay < last || d.Delay > time.Second || tries == 0 && d.Delay > 50*time.Millisecond {
			t.Fatalf("after %d tries it waits %v, after one less %v", tries, d.Delay, last)
		}
		last = d.Delay
	}
	if last != time.Second {
		t.Errorf("the longest pause is %v, want 1s", last)
	}
	soon := &semel.Error{Reason: semel.ErrInProgress, RetryAfter: 3 * time.Millisecond}
	if d := consume.Decide(consume.Run{Err: soon, Tries: 20}, nil); d.Delay != 3*time.Millisecond {
		t.Errorf("it waits %v, though the lease ends in 3ms", d.Delay)
	}
}

func TestBackoffGrowsToFiveMinutes(t *testing.T) {
	for n, most := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 9: 256 * time.Second, 40: 5 * time.Minute} {
		d := consume.Decide(consume.Run{Err: errPlain, Handlers: true, Attempt: n}, nil).Delay
		if d > most || d < most*3/4 {
			t.Errorf("after attempt %d it waits %v, want %v to %v", n, d, most*3/4, most)
		}
	}
	o := &consume.Options{Backoff: func(n int) time.Duration { return time.Duration(-n) }}
	if d := consume.Decide(consume.Run{Err: errPlain, Attempt: 2}, o); d.Delay != 0 {
		t.Errorf("a negative backoff waits %v", d.Delay)
	}
}

func TestActionsReasonsKindsHaveNames(t *testing.T) {
	for a, want := range map[fmt.Stringer]string{
		consume.Hold: "hold", consume.Ack: "ack", consume.Retry: "retry", consume.DeadLetter: "dead-letter", consume.Park: "park", consume.Action(9): "invalid",
		consume.DeadLetters: "dead letters", consume.Parked: "parked", consume.Destination(0): "invalid",
		consume.EventDecided: "decided", consume.EventReceiveFailed: "receive failed", consume.Kind(0): "Kind(0)", consume.Kind(99): "Kind(99)",
	} {
		if a.String() != want {
			t.Errorf("%#v is called %q, want %q", a, a.String(), want)
		}
	}
}
