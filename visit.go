package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/lapsed"
	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

// visit is one call on its way to a claim or an answer.
type visit struct {
	guard   *Guard
	key     store.Key
	payload Payload
	wait    time.Duration
	call    store.Call // the call as store.Decide sees it

	waitUntil  time.Time // local clock; zero before the first wait
	waitedFor  int       // the attempt that the call has waited for; 0: none
	reconciled bool      // a reconciler was asked; a call asks once
	answered   bool      // the store has sent the record, so there is no outage

	// undoState is the state to which the record returns if the handler of a
	// claim cannot start.
	undoState store.State
}

// admission is how a visit ended: with a claim, or with an answer.
type admission struct {
	claimed     bool
	reconciling bool        // the claim is for a reconciler
	found       store.Found // the last answer of the store
	sent        instant     // before the claim was sent
	granted     instant     // after it was won
	result      Result
}

func (g *Guard) newVisit(c Call) visit {
	v := visit{guard: g, key: c.storeKey(), payload: c.Payload, wait: c.Wait, undoState: store.Released}
	v.call = store.Call{Policy: g.options.OnDoubt, MaxAttempts: g.options.MaxAttempts, Token: c.reserved}
	if !c.isRedeemed() {
		v.call.Fingerprint = g.fingerprint(&c.Payload)
	}
	return v
}

// isRedeemed reports whether the call came from a token.
func (v *visit) isRedeemed() bool { return !v.call.Token.IsZero() }

// maxRounds bounds how often a call looks at a record that keeps changing,
// without a wait in between.
const maxRounds = 64

var errKeepsChanging = errors.New("the record keeps changing")

// admit looks at the record, changes it as store.Decide says, and looks again,
// until the call has a claim or an answer.
func (v *visit) admit(ctx context.Context, a *admission) error {
	f := &a.found
	err := v.claim(ctx, a)
	for round := 0; round < maxRounds; round++ {
		if errors.Is(err, store.ErrNotFound) {
			if v.isRedeemed() {
				return v.refuse(ctx, ErrExpired, 0, nil)
			}
			err = v.claim(ctx, a) // the record was swept after the last look
		}
		if err != nil {
			return v.unavailable(ctx, err)
		}
		if f.Won {
			v.answered = true
			if err := v.grant(ctx, a); err != nil {
				return v.unavailable(ctx, err)
			}
			return nil
		}
		v.answered = true
		r := &f.Record
		d := v.decide(r, f.Now)
		switch d.Action {
		case store.Execute, store.TakeOver:
			if v.attemptFailed(r) {
				return v.refuse(ctx, ErrReleased, 0, lastError(r))
			}
			p := v.nextClaim(r, d)
			a.sent = now()
			if *f, err = v.swap(ctx, r.Seen(), p); err == nil && f.Won && d.Action == store.TakeOver {
				v.observe(ctx, EventTakenOver, &f.Record, nil)
			}
		case store.DoPark:
			*f, err = v.park(ctx, r, lapsed.LastText(r))
		case store.Exhausted:
			*f, err = v.exhaust(ctx, r, d.Policy)
		case store.Parked:
			if v.guard.options.Reconcile == nil || v.reconciled {
				return v.refuse(ctx, ErrParked, 0, lastError(r))
			}
			v.reconciled = true
			if err := v.guard.reconcile(ctx, r); err != nil && !errors.Is(err, store.ErrChanged) {
				return v.refuse(ctx, ErrParked, 0, withoutOutcome(err))
			}
			*f, err = v.look(ctx)
		case store.InProgress:
			if v.attemptFailed(r) {
				return v.refuse(ctx, ErrReleased, d.Until.Sub(f.Now), lastError(r))
			}
			if err := v.waitForEnd(ctx, r, d.Until.Sub(f.Now)); err != nil {
				return err
			}
			*f, err = v.look(ctx)
			round = 0
		default:
			if d.Action == store.Replay && v.guard.options.Rerun {
				return nil // the result of the rerun is the answer
			}
			a.result, err = v.answer(ctx, r, d)
			return err
		}
	}
	return v.refuse(ctx, ErrInProgress, 0, errKeepsChanging)
}

// answer ends a visit whose decision needs no change of the record.
func (v *visit) answer(ctx context.Context, r *store.Record, d store.Decision) (Result, error) {
	switch d.Action {
	case store.Replay:
		res := Result{Outcome: r.Outcome, Replayed: true, codecs: v.guard.options.Codecs}
		v.end(ctx, EventReplayed, r, nil)
		if r.Outcome.Gone {
			return res, &Error{Reason: ErrNotKept, Operation: v.key.Operation}
		}
		return res, nil
	case store.ReplayFailure:
		err := failureOf(r.Outcome)
		v.end(ctx, EventReplayed, r, err)
		return Result{Replayed: true}, err
	case store.Mismatch:
		return Result{}, v.refuse(ctx, ErrMismatch, 0, nil)
	case store.Unverifiable:
		return Result{}, v.refuse(ctx, ErrUnverifiable, 0,
			fmt.Errorf("the first call was hashed by %q with secret %q", r.Fingerprint.Alg, r.Fingerprint.KeyID))
	case store.Expired:
		return Result{}, v.refuse(ctx, ErrExpired, 0, nil)
	}
	return Result{}, v.unavailable(ctx, fmt.Errorf("%w: state %v", store.ErrCorrupt, r.State))
}

// decide judges the record. It hashes the call's payload as the record's was.
func (v *visit) decide(r *store.Record, now time.Time) store.Decision {
	if r.Key != v.key { // the store answered another question
		return store.Decision{Action: store.Corrupt, Policy: Park}
	}
	if !v.isRedeemed() && !r.Fingerprint.Comparable(v.call.Fingerprint) && r.Fingerprint.KeyID != v.call.Fingerprint.KeyID {
		if s, ok := v.guard.secret(r.Fingerprint.KeyID); ok {
			call := v.call
			call.Fingerprint = v.payload.fingerprint(s)
			return store.Decide(r, &call, now)
		}
	}
	return store.Decide(r, &v.call, now)
}

// claim looks at the record and claims it if there is none. A redeemed call only
// looks, because Reserve made its record.
func (v *visit) claim(ctx context.Context, a *admission) (err error) {
	a.sent = now()
	if err := ctx.Err(); err != nil {
		return err // nothing was sent, so there is nothing to give back
	}
	if v.guard.options.UnprotectedOnOutage { // a store that hangs is an outage, too
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, v.guard.options.Lease/3)
		defer cancel()
	}
	if v.isRedeemed() {
		a.found, err = v.look(ctx)
		return err
	}
	p := v.firstClaim()
	a.found, err = retry.Do(ctx, func() (store.Found, error) { return v.guard.store.Claim(ctx, p) })
	if err != nil && !retry.Answered(err) {
		v.guard.giveBackUnanswered(ctx, nil, p, v.undoState)
	}
	return err
}

func (v *visit) look(ctx context.Context) (store.Found, error) {
	return retry.Do(ctx, func() (store.Found, error) { return v.guard.store.Get(ctx, v.key) })
}

func (v *visit) swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	f, err := retry.Do(ctx, func() (store.Found, error) { return v.guard.store.Swap(ctx, seen, p) })
	if err != nil && !retry.Answered(err) && p.State == store.Processing {
		v.guard.giveBackUnanswered(ctx, &seen, p, v.undoState)
	}
	return f, err
}

// grant checks that the caller is still there and that the lease leaves time for
// the handler. If not, it gives the claim back.
func (v *visit) grant(ctx context.Context, a *admission) error {
	if err := ctx.Err(); err != nil {
		v.guard.giveBack(ctx, &a.found.Record, v.undoState)
		return context.Cause(ctx)
	}
	if a.granted = now(); a.granted >= v.guard.heartbeat.deadline(a.sent) {
		v.guard.giveBack(ctx, &a.found.Record, v.undoState)
		return fmt.Errorf("the claim took longer than its lease of %v", v.guard.options.Lease)
	}
	a.claimed = true
	return nil
}

// attemptFailed reports whether the attempt that the call has waited for failed.
// The waiting call gets an error instead of the next attempt; otherwise a crowd of
// waiting calls would each run a failing handler once. An attempt that was given
// back changed nothing and does not count.
func (v *visit) attemptFailed(r *store.Record) bool {
	return v.waitedFor > 0 && r.State == store.Released && r.Attempt >= v.waitedFor
}

// refuse ends a visit with a reason.
func (v *visit) refuse(ctx context.Context, reason error, after time.Duration, cause error) error {
	err := &Error{Reason: reason, Operation: v.key.Operation, RetryAfter: max(after, 0), Cause: cause}
	v.guard.observe(ctx, Event{Kind: EventRefused, EndsCall: true, Policy: v.call.Policy, Err: err}, v.key)
	return err
}

// unavailable ends a visit for which there is no record to decide by: the caller
// left, the record is unreadable, or the store did not answer.
func (v *visit) unavailable(ctx context.Context, cause error) error {
	switch {
	case ctx.Err() != nil:
		return v.refuse(ctx, ErrCanceled, 0, cause)
	case errors.Is(cause, store.ErrCorrupt):
		return v.refuse(ctx, store.ErrCorrupt, 0, cause)
	}
	return v.refuse(ctx, ErrUnavailable, 0, cause)
}

// observe reports something that happened on the way.
func (v *visit) observe(ctx context.Context, kind string, r *store.Record, err error) {
	v.guard.observe(ctx, Event{Kind: kind, Policy: r.Policy, Attempt: r.Attempt, Err: err}, r.Key)
}

// end reports the end of the call.
func (v *visit) end(ctx context.Context, kind string, r *store.Record, err error) {
	v.guard.observe(ctx, Event{Kind: kind, EndsCall: true, Policy: r.Policy, Attempt: r.Attempt, Err: err}, r.Key)
}

func lastError(r *store.Record) error {
	if r.LastError == "" {
		return nil
	}
	return errors.New(r.LastError)
}
