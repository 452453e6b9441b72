package semel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// visit is one call on its way to a claim or an answer.
type visit struct {
	g    *Guard
	call Call
	as   store.Call // the call, as Decide sees it

	waitUntil  time.Time // local clock; zero before the first wait
	waitedFor  int       // the attempt that the call has waited for; 0: none
	reconciled bool      // a reconciler was asked; once a call is enough
	answered   bool      // the store has told of the record, so it is no outage

	// undo is the state that a claim goes back to which came to nothing.
	undo store.State
}

// admission is how a visit ended: with a claim, or with an answer.
type admission struct {
	claimed bool
	found   store.Found // what the store said last
	sent    instant     // before the claim was sent
	granted instant     // after it was won
	result  Result
}

func (g *Guard) newVisit(c Call) (v visit) {
	v.begin(g, &c)
	return v
}

// begin sets a new visit up.
func (v *visit) begin(g *Guard, c *Call) {
	v.g, v.call, v.undo = g, *c, store.Released
	v.as.Policy, v.as.MaxAttempts, v.as.Token = g.opt.OnDoubt, g.opt.MaxAttempts, c.token
	if c.token.IsZero() {
		v.as.Fingerprint = g.fingerprint(&c.payload)
	}
}

// maxRounds bounds the changes of one record that a call looks at again
// without a wait in between.
const maxRounds = 64

// admit looks at the record, changes it as Decide says, and looks again, until
// the call has a claim or an answer.
func (v *visit) admit(ctx context.Context, a *admission) error {
	f := &a.found
	err := v.claim(ctx, a)
	for round := 0; round < maxRounds; round++ {
		if errors.Is(err, store.ErrNotFound) {
			if !v.call.token.IsZero() {
				return v.refuse(ctx, EventRefused, ErrExpired, 0, nil)
			}
			err = v.claim(ctx, a) // it was swept since it was seen
		}
		if err != nil {
			return v.unavailable(ctx, err)
		}
		if f.Won {
			v.answered = true
			if err := v.granted(ctx, a); err != nil {
				return v.unavailable(ctx, err)
			}
			return nil
		}
		v.answered = true
		r := &f.Record
		d := v.decide(r, f.Now)
		switch d.Action {
		case store.Execute, store.TakeOver:
			if v.failedMeanwhile(r) {
				return v.refuse(ctx, EventBusy, ErrReleased, 0, lastError(r))
			}
			p := v.next(r, d)
			a.sent = now()
			if *f, err = v.swap(ctx, r.Seen(), p); err == nil && f.Won && d.Action == store.TakeOver {
				v.observe(ctx, EventTakenOver, &f.Record, nil)
			}
		case store.DoPark:
			*f, err = v.park(ctx, r, EventLapsedParked, lastText(r))
		case store.Exhausted:
			*f, err = v.exhaust(ctx, r, d.Policy)
		case store.Parked:
			if v.g.opt.Reconcile == nil || v.reconciled {
				return v.refuse(ctx, EventParkedRefused, ErrParked, 0, lastError(r))
			}
			v.reconciled = true
			if err := v.g.reconcile(ctx, r); err != nil && !errors.Is(err, ErrChanged) {
				return v.refuse(ctx, EventParkedRefused, ErrParked, 0, ofItsOwn(err))
			}
			*f, err = v.look(ctx)
		case store.InProgress:
			if v.failedMeanwhile(r) {
				return v.refuse(ctx, EventBusy, ErrReleased, d.Until.Sub(f.Now), lastError(r))
			}
			if err := v.wait(ctx, r, d.Until.Sub(f.Now)); err != nil {
				return err
			}
			*f, err = v.look(ctx)
			round = 0
		default:
			if d.Action == store.Replay && v.g.opt.Rerun {
				return nil // it is run again, and what that comes to is the answer
			}
			a.result, err = v.answer(ctx, r, d)
			return err
		}
	}
	return v.refuse(ctx, EventBusy, ErrInProgress, 0, errors.New("the record keeps changing"))
}

// answer ends a visit whose decision needs no change of the record.
func (v *visit) answer(ctx context.Context, r *store.Record, d store.Decision) (Result, error) {
	switch d.Action {
	case store.Replay:
		res := Result{Outcome: r.Outcome, Replayed: true, codecs: v.g.opt.Codecs}
		v.observe(ctx, EventReplayed, r, nil)
		if r.Outcome.Gone {
			return res, &Error{Reason: ErrNotKept, Operation: v.call.Operation()}
		}
		return res, nil
	case store.ReplayFailure:
		v.observe(ctx, EventFailureReplayed, r, nil)
		return Result{Replayed: true}, failureOf(r.Outcome)
	case store.Mismatch:
		return Result{}, v.refuse(ctx, EventMismatch, ErrMismatch, 0, nil)
	case store.Unverifiable:
		return Result{}, v.refuse(ctx, EventRefused, ErrUnverifiable, 0,
			fmt.Errorf("the first call was hashed by %q with secret %q", r.Fingerprint.Alg, r.Fingerprint.KeyID))
	case store.Expired:
		return Result{}, v.refuse(ctx, EventRefused, ErrExpired, 0, nil)
	}
	return Result{}, v.unavailable(ctx, fmt.Errorf("%w: state %v", store.ErrCorrupt, r.State))
}

// decide judges the record, with the call's payload hashed as the record's was.
func (v *visit) decide(r *store.Record, now time.Time) store.Decision {
	if r.Key != v.call.key { // a connection that answers somebody else's question
		return store.Decision{Action: store.Corrupt, Policy: Park}
	}
	if v.call.token.IsZero() && !r.Fingerprint.Comparable(v.as.Fingerprint) && r.Fingerprint.KeyID != v.as.Fingerprint.KeyID {
		if s, ok := v.g.secret(r.Fingerprint.KeyID); ok {
			as := v.as
			as.Fingerprint = v.call.payload.fingerprint(s)
			return store.Decide(r, &as, now)
		}
	}
	return store.Decide(r, &v.as, now)
}

// claim looks at the record and claims it if there is none. The bearer of a
// token only looks: its record was made by Reserve.
func (v *visit) claim(ctx context.Context, a *admission) (err error) {
	a.sent = now()
	if err := ctx.Err(); err != nil {
		return err // nothing was sent, so there is nothing to give back
	}
	if v.g.opt.UnprotectedOnOutage { // a store that hangs is an outage, too
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, v.g.opt.Lease/3)
		defer cancel()
	}
	if !v.call.token.IsZero() {
		a.found, err = v.look(ctx)
		return err
	}
	p := v.propose()
	a.found, err = v.g.st.Claim(ctx, p)
	if err != nil && !answered(err) && pause(ctx, pauses[0]) {
		a.found, err = send(ctx, func() (store.Found, error) { return v.g.st.Claim(ctx, p) })
	}
	if err != nil && !answered(err) {
		v.g.abandon(ctx, nil, p, v.undo)
	}
	return err
}

// look reads the record. Repeating a read is harmless, so it shares send.
func (v *visit) look(ctx context.Context) (store.Found, error) {
	return send(ctx, func() (store.Found, error) { return v.g.st.Get(ctx, v.call.key) })
}

func (v *visit) swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	f, err := send(ctx, func() (store.Found, error) { return v.g.st.Swap(ctx, seen, p) })
	if err != nil && !answered(err) && p.State == store.Processing {
		v.g.abandon(ctx, &seen, p, v.undo)
	}
	return f, err
}

// propose is a first claim.
func (v *visit) propose() store.Proposal {
	return store.Proposal{
		Key: v.call.key, State: store.Processing, Policy: v.as.Policy, Owner: newOwner(), Holder: v.g.opt.Holder,
		Fingerprint: v.as.Fingerprint, Attempt: 1, Lease: v.g.opt.Lease, Keep: v.g.opt.Retention,
	}
}

// next is a claim of a record that was seen.
func (v *visit) next(r *store.Record, d store.Decision) store.Proposal {
	p := v.propose()
	if d.Restart {
		p.Restart = true
		return p
	}
	p.Policy, p.Fingerprint, p.Attempt, p.Error = d.Policy, r.Fingerprint, r.Attempt+1, r.LastError
	return p
}

// change is a proposal that keeps what r says of the call.
func (g *Guard) change(r *store.Record, to store.State, lastErr string) store.Proposal {
	return store.Proposal{
		Key: r.Key, State: to, Policy: r.Policy, Owner: newOwner(), Holder: g.opt.Holder, Fingerprint: r.Fingerprint,
		Attempt: r.Attempt, Keep: g.opt.Retention, Error: lastErr,
	}
}

// park turns a record unknown. The store then shows it as somebody's who won
// nothing: a change to Unknown is not a claim.
func (v *visit) park(ctx context.Context, r *store.Record, kind Kind, why string) (store.Found, error) {
	p := v.g.change(r, store.Unknown, why)
	p.Policy = store.Park
	f, err := v.swap(ctx, r.Seen(), p)
	if err == nil && f.Won {
		v.observe(ctx, kind, &f.Record, errors.New(why))
		f.Won = false
	}
	return f, err
}

// exhaust ends a key that has no attempt left.
func (v *visit) exhaust(ctx context.Context, r *store.Record, policy Policy) (store.Found, error) {
	if policy == Park {
		return v.park(ctx, r, EventExhausted, exhaustedText(r))
	}
	last := lastText(r)
	o, err := exhaustedFailure(r.Attempt, last).outcome()
	if err != nil {
		return store.Found{}, err
	}
	p := v.g.change(r, store.Failed, last)
	p.Outcome = o
	f, err := v.swap(ctx, r.Seen(), p)
	if err == nil && f.Won {
		v.observe(ctx, EventExhausted, &f.Record, errors.New(last))
		f.Won = false
	}
	return f, err
}

// granted checks that there is still somebody to run the handler for, and time. If
// not, the claim is given back.
func (v *visit) granted(ctx context.Context, a *admission) error {
	if err := ctx.Err(); err != nil {
		v.g.giveBack(ctx, &a.found.Record, v.undo)
		return context.Cause(ctx)
	}
	if a.granted = now(); a.granted >= v.g.keep.deadline(a.sent) {
		v.g.giveBack(ctx, &a.found.Record, v.undo)
		return fmt.Errorf("the claim took longer than its lease of %v", v.g.opt.Lease)
	}
	a.claimed = true
	return nil
}

// failedMeanwhile reports whether the attempt that the call has waited for
// failed. A waiter gets the failure, not the right to run: else a crowd of
// waiters would run a failing handler once each. An attempt that was given
// back changed nothing and does not count.
func (v *visit) failedMeanwhile(r *store.Record) bool {
	return v.waitedFor > 0 && r.State == store.Released && r.Attempt >= v.waitedFor
}

// refuse ends a visit with a reason.
func (v *visit) refuse(ctx context.Context, kind Kind, reason error, after time.Duration, cause error) error {
	err := &Error{Reason: reason, Operation: v.call.Operation(), RetryAfter: max(after, 0), Cause: cause}
	v.g.observe(ctx, Event{Kind: kind, Policy: v.as.Policy, Err: err}, v.call.key)
	return err
}

func (v *visit) unavailable(ctx context.Context, cause error) error {
	kind := EventStoreFailed
	if ctx.Err() != nil {
		kind = EventRefused // the caller left
	}
	return v.refuse(ctx, kind, ErrUnavailable, 0, cause)
}

func (v *visit) observe(ctx context.Context, kind Kind, r *store.Record, err error) {
	v.g.observe(ctx, Event{Kind: kind, Policy: r.Policy, Attempt: r.Attempt, Err: err}, r.Key)
}

func newOwner() (o store.Owner) {
	// The runtime's generator is ChaCha8 with a seed of the system's: an owner
	// has to be unique, and costs no system call.
	binary.LittleEndian.PutUint64(o[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(o[8:], rand.Uint64())
	return o
}

func lastError(r *store.Record) error {
	if r.LastError == "" {
		return nil
	}
	return errors.New(r.LastError)
}

func lapsedText(r *store.Record) string {
	if strings.HasSuffix(r.Holder, asksFor) {
		return undecidedText(r, r.Holder+" died, froze or lost touch")
	}
	return fmt.Sprintf("the lease of attempt %d lapsed: %s died, froze or lost touch", r.Attempt, r.Holder)
}

// lastText is how the last attempt ended: LastError is of the one before, if its
// process died.
func lastText(r *store.Record) string {
	if r.State == store.Processing {
		return lapsedText(r)
	}
	return r.LastError
}

func exhaustedText(r *store.Record) string {
	return fmt.Sprintf("all %d attempts failed; the last: %s", r.Attempt, lastText(r))
}

func exhaustedFailure(attempts int, last string) *Failure {
	return &Failure{Code: CodeAttemptsExhausted, Message: fmt.Sprintf("all %d attempts failed; the last: %s", attempts, last)}
}
