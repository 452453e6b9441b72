// Package sweep removes records that have expired, and recovers calls whose
// process died. Every store needs a sweep that some process runs; without it the
// store grows, and a crashed call stays as it is until the next call of its key.
package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/callback"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

// Options configures a sweep. Nil and zero fields mean the defaults.
type Options struct {
	// Every is the pause between two passes: 1 min by default.
	Every time.Duration
	// Batch is the most records that one step removes or recovers: 100 by
	// default. Small steps hold no lock for long.
	Batch int
	// Rest is how long a pass rests between its steps, in multiples of the time
	// that they took: 3 by default, so that the store is busy with the sweep for
	// a quarter of the time. No rest exceeds 1 s. Negative: no rest.
	Rest int
	// Retention is how long a recovered record is kept: 7 days by default. Use at least
	// the longest Retention of all Guards of the store, also if other programs have them:
	// after it the steps of the record are forgotten, and run again.
	Retention time.Duration
	// StoreTimeout is how long one request to the store may take: 30 s by default.
	// Then the pass ends with an error that wraps semel.ErrUnavailable.
	StoreTimeout time.Duration
	// Observe gets an event for each recovered record. Nil: a record that is parked is
	// logged as semel.LogEvents(nil) does. A panic of Observe, AfterStep or AfterPass is
	// logged and has no effect.
	Observe func(ctx context.Context, e semel.Event)
	// AfterStep gets what a pass has done so far, after each of its steps. A pass looks
	// at every record, so that it may have thousands of steps. Nil: nothing.
	AfterStep func(s Stats)
	// AfterPass gets what each pass of Run did, and its error. Nil: nothing.
	AfterPass func(s Stats, err error)
}

// DefaultRetention is how long a sweep keeps a recovered record by default: as long as
// the outcomes of messages, the longest default of a Guard. Longer is always safe.
const DefaultRetention = 7 * 24 * time.Hour

// Stats is what a pass did.
type Stats struct {
	Deleted  int // records that had expired
	Released int // expired claims and reservations that may run again
	Parked   int // expired claims whose effect is not known
}

func (o *Options) withDefaults(st store.Store) (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	d.Every = cmp.Or(d.Every, time.Minute)
	d.Batch = cmp.Or(d.Batch, 100)
	d.Rest = cmp.Or(d.Rest, 3)
	d.Retention = cmp.Or(d.Retention, DefaultRetention)
	d.StoreTimeout = cmp.Or(d.StoreTimeout, 30*time.Second)
	var wrong error
	switch {
	case st == nil:
		wrong = errors.New("sweep: store: is nil")
	case d.Every < 0 || d.Batch < 0 || d.Retention < time.Millisecond || d.StoreTimeout < time.Millisecond:
		wrong = fmt.Errorf("sweep: options: Every %v and Batch %d must not be negative, and Retention %v and StoreTimeout %v must be at least 1ms",
			d.Every, d.Batch, d.Retention, d.StoreTimeout)
	}
	if wrong != nil {
		return d, &semel.Error{Reason: semel.ErrInvalid, Cause: wrong}
	}
	return d, nil
}

// Run removes expired records and recovers expired claims, pass after pass, until
// ctx ends. Any number of processes may run it. It returns nil when ctx ends, and
// an error only for wrong options. If a step fails, AfterPass gets the error, and the
// next pass begins with that step. If it fails again, the next pass begins at the start.
func Run(ctx context.Context, st store.Store, o *Options) error {
	d, err := o.withDefaults(st)
	if err != nil {
		return err
	}
	s := sweeper{store: st, options: d}
	for from := store.Cursor(""); ; {
		var failed store.Cursor
		stats, err := s.pass(ctx, from, &failed)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is how Run ends
		}
		if d.AfterPass != nil {
			callback.Report(ctx, "sweep: AfterPass", func() { d.AfterPass(stats, err) })
		}
		if from == failed { // no progress, or none to make
			failed = ""
		}
		from = failed
		if !retry.Pause(ctx, d.Every) {
			return nil
		}
	}
}

// Once makes one pass. If some records could not be recovered, it goes on with the
// others, and the error has all the causes.
func Once(ctx context.Context, st store.Store, o *Options) (Stats, error) {
	d, err := o.withDefaults(st)
	if err != nil {
		return Stats{}, err
	}
	s := sweeper{store: st, options: d}
	var failed store.Cursor
	return s.pass(ctx, "", &failed)
}

// pass makes a pass from a cursor on. If a step fails, failed is its cursor.
func (s *sweeper) pass(ctx context.Context, from store.Cursor, failed *store.Cursor) (stats Stats, err error) {
	var errs []error
	pacer := pacer{factor: max(0, s.options.Rest)}
	for {
		start := time.Now()
		res, err := s.step(ctx, from)
		if err != nil {
			*failed = from
			return stats, errors.Join(append(errs, &semel.Error{Reason: semel.ErrUnavailable, Cause: err})...)
		}
		stats.Deleted += res.Deleted
		for i := range res.Lapsed {
			if err := s.recover(ctx, &res.Lapsed[i], res.Now, &stats); err != nil {
				errs = append(errs, err)
			}
		}
		if s.options.AfterStep != nil {
			callback.Report(ctx, "sweep: AfterStep", func() { s.options.AfterStep(stats) })
		}
		if from = res.Next; from == "" {
			return stats, errors.Join(errs...)
		}
		if err := pacer.rest(ctx, time.Since(start)); err != nil {
			return stats, errors.Join(append(errs, &semel.Error{Reason: semel.ErrCanceled, Cause: err})...)
		}
	}
}

// step asks the store for one step.
func (s *sweeper) step(ctx context.Context, from store.Cursor) (store.SweepResult, error) {
	limited, cancel := context.WithTimeout(ctx, s.options.StoreTimeout)
	defer cancel()
	res, err := s.store.Sweep(limited, from, s.options.Batch)
	return res, s.explainLimit(ctx, limited, err)
}

// explainLimit names the limit if it, and not the caller, ended a request.
func (s *sweeper) explainLimit(ctx, limited context.Context, err error) error {
	if err == nil || retry.Answered(err) || limited.Err() == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("the store gave no answer within StoreTimeout, %v: %w", s.options.StoreTimeout, err)
}

const (
	longestRest  = time.Second // after a step of any length
	shortestRest = time.Millisecond
)

// pacer rests between the steps of a pass.
type pacer struct {
	factor int           // how many times as long as the steps
	owed   time.Duration // rests too short to be taken by themselves
}

// rest rests for a step that took so long.
func (p *pacer) rest(ctx context.Context, took time.Duration) error {
	if p.factor == 0 || took < longestRest/time.Duration(p.factor) {
		p.owed += time.Duration(p.factor) * took
	} else { // the product could overflow
		p.owed += longestRest
	}
	if p.owed < shortestRest {
		return nil
	}
	timer := time.NewTimer(min(p.owed, longestRest))
	defer timer.Stop()
	p.owed = 0
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type sweeper struct {
	store   store.Store
	options Options
}

// recover changes one expired claim as store.Decide says of a call of its key that has no
// limit of attempts. The next call applies the limit of its own Guard, which no other
// program knows.
func (s *sweeper) recover(ctx context.Context, r *store.Record, now time.Time, stats *Stats) error {
	d := store.Decide(r, &store.Call{Policy: r.Policy, Fingerprint: r.Fingerprint}, now)
	p := store.Proposal{
		Key: r.Key, State: store.Released, Policy: r.Policy, Owner: protocol.NewOwner(), Holder: r.Holder, Fingerprint: r.Fingerprint,
		Attempt: r.Attempt, Keep: s.options.Retention, Error: protocol.ExpiredLeaseText(r),
	}
	if protocol.IsSaga(r.Key) {
		p.Keep = protocol.UnfinishedSagaRetention // it can only be released
	}
	kind, count := semel.EventReleased, &stats.Released
	switch d.Action {
	case store.Execute: // a reservation that nobody redeemed
		p.Error = "the reservation expired"
	case store.TakeOver:
	case store.DoPark:
		p.State, kind, count = store.Unknown, semel.EventParked, &stats.Parked
	default:
		return nil // somebody has changed it since, or it is unreadable
	}
	p.FormerOwners = r.FormerOwnersAfter(p.State)
	limited, cancel := context.WithTimeout(ctx, s.options.StoreTimeout)
	defer cancel()
	timers, hasTimers := store.As[store.Timers](s.store)
	f, err := retry.Do(limited, func() (f store.Found, err error) {
		if hasTimers && protocol.IsSaga(r.Key) { // its process may have died before it made one
			_, err = timers.SetTimer(limited, r.Key, store.Owner{}, protocol.NewOwner(), 0)
		}
		if err != nil {
			return f, err
		}
		return s.store.Swap(limited, r.Seen(), p)
	})
	err = s.explainLimit(ctx, limited, err)
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && !f.Won:
		return nil // somebody was faster
	case err != nil:
		return &semel.Error{Reason: semel.ErrUnavailable, Operation: r.Key.Operation, Cause: err}
	}
	*count++
	observe := s.options.Observe
	if observe == nil && kind == semel.EventParked {
		observe = semel.LogEvents(nil)
	}
	if observe != nil {
		e := semel.Event{
			Kind: kind, Operation: r.Key.Operation, Tenant: r.Key.Tenant, Key: r.Key.Short(),
			Policy: r.Policy, Attempt: r.Attempt, Err: errors.New(p.Error),
		}
		callback.Report(ctx, "sweep: Observe", func() { observe(ctx, e) })
	}
	return nil
}
