package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// pendingCall is a call that has neither a claim nor an answer yet.
type pendingCall struct {
	guard     *Guard
	key       store.Key
	payload   Payload
	wait      time.Duration
	storeCall store.Call // the call as store.Decide sees it

	waitUntil         time.Time     // local clock; zero before the first wait
	waitedFor         int           // the attempt that the call has waited for; 0: none
	reconciled        bool          // a reconciler was asked; a call asks once
	answered          bool          // the store has answered about the key, so there is no outage
	mayRunUnprotected bool          // Options.UnprotectedOnOutage, in a call that may use it
	running           time.Duration // how long the run in progress has been going on; zero: not known
	holder            string        // of the record that was found last; empty: none was found

	// undoState is the state to which the record returns if the handler of a
	// claim cannot start.
	undoState store.State
}

// admission is the result of admit: a claim or an answer.
type admission struct {
	claimed     bool
	reconciling bool        // the claim is for a reconciler
	found       store.Found // the last answer of the store
	sent        instant     // before the claim was sent
	granted     instant     // after it was won
	result      Result
}

func (g *Guard) newPendingCall(call Call) pendingCall {
	c := pendingCall{guard: g, key: call.storeKey(&g.options), payload: call.Payload, wait: call.Wait, undoState: store.Released}
	c.storeCall = store.Call{Policy: g.options.OnDoubt, MaxAttempts: g.options.MaxAttempts, Token: call.reserved}
	if !call.isRedeemed() {
		c.storeCall.Fingerprint = g.fingerprint(&call.Payload)
	}
	return c
}

// isRedeemed reports whether the call came from a token.
func (c *pendingCall) isRedeemed() bool { return !c.storeCall.Token.IsZero() }

// maxRounds bounds how often a call looks at a record that keeps changing,
// without a wait in between.
const maxRounds = 64

var errKeepsChanging = fmt.Errorf("the record changed %d times while this call read it; call again", maxRounds)

// admit looks at the record, changes it as store.Decide says, and looks again,
// until the call has a claim or an answer.
func (c *pendingCall) admit(ctx context.Context, a *admission) error {
	f := &a.found
	err := c.claim(ctx, a)
	for round := 0; round < maxRounds; round++ {
		if errors.Is(err, store.ErrNotFound) {
			if c.isRedeemed() {
				return c.refuse(ctx, ErrExpired, 0, nil)
			}
			err = c.claim(ctx, a) // the record was swept after the last look
		}
		if err != nil {
			return c.unavailable(ctx, err)
		}
		if f.Won {
			c.answered = true
			if err := c.grant(ctx, a); err != nil {
				return c.unavailable(ctx, err)
			}
			return nil
		}
		c.answered = true
		r := &f.Record
		d := c.decide(r, f.Now)
		switch d.Action {
		case store.Execute, store.TakeOver:
			if c.attemptFailed(r) {
				return c.refuse(ctx, ErrReleased, 0, lastError(r))
			}
			p := c.nextClaim(r, d, store.Processing)
			a.sent = now()
			if *f, err = c.swap(ctx, r.Seen(), p); err == nil && f.Won && d.Action == store.TakeOver {
				c.observe(ctx, EventTakenOver, &f.Record, nil)
			}
		case store.DoPark:
			*f, err = c.park(ctx, r, protocol.LastAttemptText(r))
		case store.Exhausted:
			*f, err = c.exhaust(ctx, r, d.Policy)
		case store.Parked:
			if c.guard.options.Reconcile == nil || c.reconciled {
				return c.refuse(ctx, ErrParked, 0, lastError(r))
			}
			c.reconciled = true
			if err := c.guard.reconcile(ctx, r); err != nil && !errors.Is(err, store.ErrChanged) {
				return c.refuse(ctx, ErrParked, 0, asCause(err))
			}
			*f, err = c.look(ctx)
		case store.InProgress:
			if c.attemptFailed(r) {
				return c.refuse(ctx, ErrReleased, d.Until.Sub(f.Now), lastError(r))
			}
			c.running = runningFor(r, f.Now)
			if err := c.waitForEnd(ctx, r, d.Until.Sub(f.Now)); err != nil {
				return err
			}
			*f, err = c.look(ctx)
			round = 0
		default:
			if d.Action == store.Replay && c.guard.options.Rerun {
				return nil // the result of the rerun is the answer
			}
			a.result, err = c.answer(ctx, r, d)
			return err
		}
	}
	return c.refuse(ctx, ErrInProgress, 0, errKeepsChanging)
}

// answer ends a call whose decision needs no change of the record.
func (c *pendingCall) answer(ctx context.Context, r *store.Record, d store.Decision) (Result, error) {
	if d.Action == store.Replay || d.Action == store.ReplayFailure {
		if err := checkDecrypted(&r.Outcome); err != nil {
			return Result{}, c.unavailable(ctx, err)
		}
	}
	switch d.Action {
	case store.Replay:
		res := Result{Outcome: r.Outcome, Replayed: true, codecs: c.guard.options.Codecs}
		c.reportEnd(ctx, EventReplayed, r, nil)
		if r.Outcome.Gone {
			return res, &Error{Reason: ErrNotKept, Operation: c.key.Operation}
		}
		return res, nil
	case store.ReplayFailure:
		err := failureOf(r.Outcome)
		if errors.Is(err, store.ErrCorrupt) {
			return Result{}, c.unavailable(ctx, err)
		}
		c.reportEnd(ctx, EventReplayed, r, err)
		return Result{Replayed: true}, err
	case store.Mismatch:
		return Result{}, c.refuse(ctx, ErrMismatch, 0, nil)
	case store.Unverifiable:
		return Result{}, c.refuse(ctx, ErrUnverifiable, 0,
			c.guard.unverifiable("the first call", r.Fingerprint))
	case store.Expired:
		return Result{}, c.refuse(ctx, ErrExpired, 0, nil)
	}
	return Result{}, c.unavailable(ctx, fmt.Errorf("%w: state %v", store.ErrCorrupt, r.State))
}

// decide judges the record. It hashes the call's payload as the record's was.
func (c *pendingCall) decide(r *store.Record, now time.Time) store.Decision {
	if r.Key != c.key { // the store answered another question
		return store.Decision{Action: store.Corrupt, Policy: Park}
	}
	c.holder = r.Holder
	if !c.isRedeemed() && !r.Fingerprint.Comparable(c.storeCall.Fingerprint) && r.Fingerprint.KeyID != c.storeCall.Fingerprint.KeyID {
		if s, ok := c.guard.secret(r.Fingerprint.KeyID); ok {
			call := c.storeCall
			call.Fingerprint = c.payload.fingerprint(s)
			return store.Decide(r, &call, now)
		}
	}
	return store.Decide(r, &c.storeCall, now)
}

// claim looks at the record and claims it if there is none. A redeemed call only
// looks, because Reserve made its record.
func (c *pendingCall) claim(ctx context.Context, a *admission) (err error) {
	a.sent = now()
	if err := ctx.Err(); err != nil {
		return err // nothing was sent, so there is nothing to give back
	}
	if c.isRedeemed() {
		a.found, err = c.look(ctx)
		return err
	}
	p := c.firstClaim()
	p.Lease = c.guard.leaseWithin(ctx)
	a.found, err = c.guard.ask(ctx, func(ctx context.Context) (store.Found, error) {
		f, err := c.guard.store.Claim(ctx, p)
		c.noteClaim(p.Owner, f, err)
		return f, err
	})
	if err != nil && c.mayRunUnprotected && !c.answered { // a store that takes no changes may have the record
		c.askForRecord(ctx, p.Owner)
	}
	if c.maybeGranted(&a.found, err, p.Owner) {
		c.guard.giveBackUnanswered(ctx, nil, p, c.undoState)
	}
	return err
}

func (c *pendingCall) look(ctx context.Context) (store.Found, error) {
	return c.guard.ask(ctx, func(ctx context.Context) (store.Found, error) { return c.noteAnswer(c.guard.store.Get(ctx, c.key)) })
}

func (c *pendingCall) swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if p.State == store.Processing {
		p.Lease = c.guard.leaseWithin(ctx)
	}
	f, err := c.guard.ask(ctx, func(ctx context.Context) (store.Found, error) { return c.guard.store.Swap(ctx, seen, p) })
	if p.State == store.Processing && c.maybeGranted(&f, err, p.Owner) {
		c.guard.giveBackUnanswered(ctx, &seen, p, c.undoState)
	}
	return f, err
}

// grant checks that the caller is still there and that the lease leaves time for
// the handler. If not, it gives the claim back.
func (c *pendingCall) grant(ctx context.Context, a *admission) error {
	if err := ctx.Err(); err != nil {
		c.guard.giveBack(ctx, &a.found.Record, c.undoState)
		return context.Cause(ctx)
	}
	if a.granted = now(); c.guard.heartbeat.isOver(a.sent, a.granted) {
		c.guard.giveBack(ctx, &a.found.Record, c.undoState)
		return fmt.Errorf("the claim took longer than its lease of %v", c.guard.options.Lease)
	}
	a.claimed = true
	return nil
}

// attemptFailed reports whether the attempt that the call has waited for failed.
// The waiting call gets an error instead of the next attempt; otherwise a crowd of
// waiting calls would each run a failing handler once. An attempt that was given
// back changed nothing and does not count.
func (c *pendingCall) attemptFailed(r *store.Record) bool {
	return c.waitedFor > 0 && r.State == store.Released && r.Attempt >= c.waitedFor
}

// refuse ends a call with a reason.
func (c *pendingCall) refuse(ctx context.Context, reason error, after time.Duration, cause error) error {
	err := &Error{Reason: reason, Operation: c.key.Operation, RetryAfter: max(after, 0), Cause: cause}
	if errors.Is(reason, ErrInProgress) {
		err.Running = c.running
	}
	c.guard.observe(ctx, Event{Kind: EventRefused, EndsCall: !c.runsUnprotected(err), Policy: c.storeCall.Policy, Err: err, Holder: c.holder}, c.key)
	return err
}

// runningFor is how long the claim of r has been held. The fence of a claim is the
// store's time in microseconds, unless an earlier fence was higher.
func runningFor(r *store.Record, now time.Time) time.Duration {
	if r.State != store.Processing || r.Fence > 1<<62 {
		return 0
	}
	return max(0, now.Sub(store.Time(int64(r.Fence))))
}

// beganLife reports whether the claim of r began a life of the key: there was no record, or
// it had expired. The fence of such a claim is the time of Created. If an earlier fence was
// higher, beganLife is false, which only binds the key to its payload for longer.
func beganLife(r *store.Record) bool { return r.Fence <= uint64(max(0, store.Micros(r.Created))) }

// unavailable ends a call for which there is no record to decide by: the caller
// left, the record is unreadable, or the store did not answer.
func (c *pendingCall) unavailable(ctx context.Context, cause error) error {
	switch {
	case ctx.Err() != nil:
		return c.refuse(ctx, ErrCanceled, 0, cause)
	case errors.Is(cause, store.ErrCorrupt):
		return c.refuse(ctx, store.ErrCorrupt, 0, cause)
	}
	return c.refuse(ctx, ErrUnavailable, 0, cause)
}

// observe reports something that happened on the way.
func (c *pendingCall) observe(ctx context.Context, kind string, r *store.Record, err error) {
	c.guard.observe(ctx, Event{Kind: kind, Policy: r.Policy, Attempt: r.Attempt, Err: err}, r.Key)
}

// reportEnd reports the end of the call.
func (c *pendingCall) reportEnd(ctx context.Context, kind string, r *store.Record, err error) {
	c.guard.observe(ctx, Event{Kind: kind, EndsCall: true, Policy: r.Policy, Attempt: r.Attempt, Err: err, Holder: r.Holder}, r.Key)
}
