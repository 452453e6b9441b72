package driver_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

var errPlain = errors.New("plain")

func said(reason error) error { return &semel.Error{Reason: reason, Operation: "op"} }

// noTurn is a Turn that never comes.
type noTurn struct{ error }

func (noTurn) Ready() <-chan struct{} { return nil }
func (noTurn) Leave()                 {}

// The table of the package's documentation, row by row.
func TestDecide_EachResult_FollowsTheTable(t *testing.T) {
	failure := &semel.Failure{Code: "declined", Message: "no"}
	for _, c := range []struct {
		name   string
		run    driver.Result
		action driver.Action
		reason driver.Reason
	}{
		{"success", driver.Result{Attempt: 1}, driver.Ack, driver.ReasonDone},
		{"a duplicate", driver.Result{Replayed: true}, driver.Ack, driver.ReasonDuplicate},
		{"a failure", driver.Result{Err: failure, FromHandler: true, Attempt: 1}, driver.DeadLetter, driver.ReasonFailed},
		{"a wrapped failure", driver.Result{Err: fmt.Errorf("x: %w", failure), Attempt: 1}, driver.DeadLetter, driver.ReasonFailed},
		{"a replayed failure", driver.Result{Err: failure, Replayed: true}, driver.DeadLetter, driver.ReasonFailed},
		{"no attempt left", driver.Result{Err: &semel.Failure{Code: semel.CodeAttemptsExhausted}}, driver.DeadLetter, driver.ReasonExhausted},
		{"a plain error", driver.Result{Err: errPlain, FromHandler: true, Attempt: 1}, driver.Retry, driver.ReasonError},
		{"no effect", driver.Result{Err: semel.NoEffect(errPlain), FromHandler: true, Attempt: 1}, driver.Retry, driver.ReasonError},
		{"a failure without effect", driver.Result{Err: semel.NoEffect(failure), FromHandler: true, Attempt: 1}, driver.Retry, driver.ReasonError},
		{"parked", driver.Result{Err: said(semel.ErrParked)}, driver.Quarantine, driver.ReasonUnknown},
		{"mismatch", driver.Result{Err: said(semel.ErrMismatch)}, driver.DeadLetter, driver.ReasonMismatch},
		{"in progress", driver.Result{Err: said(semel.ErrInProgress)}, driver.Hold, driver.ReasonInProgress},
		{"in progress, until its turn", driver.Result{Err: &semel.Error{Reason: semel.ErrInProgress, Cause: noTurn{errPlain}}}, driver.Hold, driver.ReasonTurn},
		{"released", driver.Result{Err: said(semel.ErrReleased)}, driver.Hold, driver.ReasonInProgress},
		{"lease lost", driver.Result{Err: said(semel.ErrLeaseLost), Attempt: 1}, driver.Hold, driver.ReasonLeaseLost},
		{"unavailable", driver.Result{Err: said(semel.ErrUnavailable)}, driver.Hold, driver.ReasonUnavailable},
		{"a transaction that did not commit", driver.Result{Err: said(semel.ErrUnavailable), Attempt: 1}, driver.Retry, driver.ReasonError},
		{"a transaction whose part of the store is away", driver.Result{Err: &semel.Error{Reason: semel.ErrUnavailable, Cause: store.WithExtent(errPlain, store.ExtentPart)}, Attempt: 1}, driver.Hold, driver.ReasonUnavailable},
		{"a corrupt record", driver.Result{Err: &semel.Error{Reason: store.ErrCorrupt}}, driver.Quarantine, driver.ReasonCorrupt},
		{"not stored", driver.Result{Err: said(semel.ErrOutcomeNotStored), Attempt: 1}, driver.Ack, driver.ReasonDoneButNotStored},
		{"a failure not stored", driver.Result{Err: &semel.Error{Reason: semel.ErrOutcomeNotStored, Cause: failure}}, driver.DeadLetter, driver.ReasonFailed},
		{"not kept", driver.Result{Err: said(semel.ErrNotKept), Replayed: true}, driver.Ack, driver.ReasonDuplicate},
		{"unverifiable", driver.Result{Err: said(semel.ErrUnverifiable)}, driver.Quarantine, driver.ReasonUnverifiable},
		{"invalid", driver.Result{Err: said(semel.ErrInvalid)}, driver.DeadLetter, driver.ReasonInvalid},
		{"expired", driver.Result{Err: said(semel.ErrExpired)}, driver.DeadLetter, driver.ReasonExpired},
		{"no key", driver.Result{Err: fmt.Errorf("x: %w", consume.ErrNoKey)}, driver.DeadLetter, driver.ReasonNoKey},
		{"rejected", driver.Result{Err: consume.ErrRejected}, driver.Hold, driver.ReasonRejected},
		{"a handler that says so", driver.Result{Err: consume.ErrNoKey, FromHandler: true, Attempt: 1}, driver.Retry, driver.ReasonError},
		{"changed", driver.Result{Err: said(store.ErrChanged)}, driver.DeadLetter, driver.ReasonInvalid},
	} {
		d := driver.Decide(c.run, driver.Policy{Backoff: consume.Backoff})
		if d.Action != c.action || d.Reason != c.reason {
			t.Errorf("%s: %v for %q, want %v for %q", c.name, d.Action, d.Reason, c.action, c.reason)
		}
		if !errors.Is(d.Err, c.run.Err) || d.Attempt != c.run.Attempt {
			t.Errorf("%s: the disposition has attempt %d and error %v", c.name, d.Attempt, d.Err)
		}
		if (d.Action == driver.Hold || d.Action == driver.Retry) != (d.Delay > 0) {
			t.Errorf("%s: %v after %v", c.name, d.Action, d.Delay)
		}
	}
}

// A handler makes calls of its own. Their errors do not concern the message: a
// mismatch there must not dead-letter it, and a parked call must not quarantine
// it.
func TestDecide_ErrorOfAnotherCall_Retries(t *testing.T) {
	for _, reason := range []error{
		semel.ErrMismatch, semel.ErrParked, semel.ErrInProgress, semel.ErrUnavailable, semel.ErrInvalid, semel.ErrOutcomeNotStored, semel.ErrNotKept,
	} {
		if d := driver.Decide(driver.Result{Err: said(reason), FromHandler: true, Attempt: 1}, driver.Policy{}); d.Action != driver.Retry {
			t.Errorf("%v from the handler: %v", reason, d.Action)
		}
	}
}

func TestDecide_AckFailures_AcksFailuresButNotExhaustion(t *testing.T) {
	o := driver.Policy{AckFailures: true}
	if d := driver.Decide(driver.Result{Err: semel.Final(errPlain)}, o); d.Action != driver.Ack {
		t.Errorf("a failure: %v, want ack", d.Action)
	}
	if d := driver.Decide(driver.Result{Err: &semel.Failure{Code: semel.CodeAttemptsExhausted}}, o); d.Action != driver.DeadLetter {
		t.Errorf("attempts exhausted: %v, want dead-letter", d.Action)
	}
}

func TestDecide_Hold_WaitsLongerEachTime(t *testing.T) {
	last := time.Duration(0)
	for tries := range 30 {
		d := driver.Decide(driver.Result{Err: said(semel.ErrInProgress), Tries: tries}, driver.Policy{})
		if d.Delay < last || d.Delay > time.Second || tries == 0 && d.Delay > 50*time.Millisecond {
			t.Fatalf("after %d tries it waits %v, after one less %v", tries, d.Delay, last)
		}
		last = d.Delay
	}
	if last != time.Second {
		t.Errorf("the longest pause is %v, want 1s", last)
	}
	soon := &semel.Error{Reason: semel.ErrInProgress, RetryAfter: 3 * time.Millisecond}
	if d := driver.Decide(driver.Result{Err: soon, Tries: 20}, driver.Policy{}); d.Delay != 3*time.Millisecond {
		t.Errorf("it waits %v, though the lease ends in 3ms", d.Delay)
	}
}

func TestBackoff_GrowsToFiveMinutes(t *testing.T) {
	for n, most := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 9: 256 * time.Second, 40: 5 * time.Minute} {
		d := driver.Decide(driver.Result{Err: errPlain, FromHandler: true, Attempt: n}, driver.Policy{Backoff: consume.Backoff}).Delay
		if d > most || d < most*3/4 {
			t.Errorf("after attempt %d it waits %v, want %v to %v", n, d, most*3/4, most)
		}
	}
	o := driver.Policy{Backoff: func(n int) time.Duration { return time.Duration(-n) }}
	if d := driver.Decide(driver.Result{Err: errPlain, Attempt: 2}, o); d.Delay != 0 {
		t.Errorf("a negative backoff waits %v", d.Delay)
	}
}

func TestString_ActionsAndKinds_HaveNames(t *testing.T) {
	for a, want := range map[fmt.Stringer]string{
		driver.Hold: "hold", driver.Ack: "ack", driver.Retry: "retry", driver.DeadLetter: "dead-letter", driver.Quarantine: "quarantine", driver.Action(9): "invalid",
		consume.EventDecided: "decided", consume.EventReceiveFailed: "receive failed", consume.Kind(0): "Kind(0)", consume.Kind(99): "Kind(99)",
	} {
		if a.String() != want {
			t.Errorf("%#v is called %q, want %q", a, a.String(), want)
		}
	}
}

// busy is the error of a handler that was told when to come again.
type busy time.Duration

func (busy) Error() string               { return "busy" }
func (b busy) RetryAfter() time.Duration { return time.Duration(b) }

// busyUntil panics in RetryAfter if it is a nil pointer.
type busyUntil struct{ after time.Duration }

func (*busyUntil) Error() string               { return "busy" }
func (b *busyUntil) RetryAfter() time.Duration { return b.after }

// The pause that the handler's error names goes before Backoff, also if nothing was
// done. An error of the Runner, or of another call, has no say.
func TestDecide_HandlersErrorHasRetryAfter_IsThePause(t *testing.T) {
	for name, c := range map[string]struct {
		run  driver.Result
		want time.Duration
	}{
		"an error":       {driver.Result{Err: fmt.Errorf("x: %w", busy(time.Hour)), FromHandler: true, Attempt: 3}, time.Hour},
		"without effect": {driver.Result{Err: semel.NoEffect(busy(time.Minute)), FromHandler: true, Attempt: 1}, time.Minute},
		"negative":       {driver.Result{Err: busy(-1), FromHandler: true, Attempt: 1}, 0},
		"a nil pointer":  {driver.Result{Err: (*busyUntil)(nil), FromHandler: true, Attempt: 1}, time.Second},
		"of the Runner":  {driver.Result{Err: busy(time.Hour), Attempt: 1}, time.Second},
		"none":           {driver.Result{Err: errPlain, FromHandler: true, Attempt: 1}, time.Second},
	} {
		d := driver.Decide(c.run, driver.Policy{Backoff: func(int) time.Duration { return time.Second }})
		if d.Action != driver.Retry || d.Delay != c.want {
			t.Errorf("%s: %v after %v, want a retry after %v", name, d.Action, d.Delay, c.want)
		}
	}
}

func TestDecide_BackoffPanics_RetriesAfterSecond(t *testing.T) {
	d := driver.Decide(driver.Result{Err: errors.New("down"), FromHandler: true, Attempt: 3}, driver.Policy{Backoff: func(int) time.Duration { panic("boom") }})
	if d.Action != driver.Retry || d.Delay != time.Second {
		t.Errorf("%+v, want a retry after 1s", d)
	}
}
