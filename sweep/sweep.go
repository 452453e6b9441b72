// Package sweep removes records that have expired, and recovers calls whose
// process died. Every store needs a sweep that some process runs; without it the
// store grows, and a crashed call stays as it is until the next call of its key.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/lapsed"
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
	// Retention is how long a recovered record is kept: 24 h by default. Use the
	// Guards' Retention.
	Retention time.Duration
	// MaxAttempts is the Guards' MaxAttempts, so that an expired claim that was
	// the last attempt ends as a Guard would end it. Zero: no limit.
	MaxAttempts int
	// Observe gets an event for each recovered record. Nil: none.
	Observe func(ctx context.Context, e semel.Event)
	// AfterPass gets what each pass of Run did, and its error. Nil: nothing.
	AfterPass func(s Stats, err error)
}

// Stats is what a pass did.
type Stats struct {
	Deleted  int // records that had expired
	Released int // expired claims and reservations that may run again
	Parked   int // expired claims whose effect is not known
	Failed   int // expired claims that were the last attempt
}

func (o *Options) withDefaults(st store.Store) (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Every == 0 {
		d.Every = time.Minute
	}
	if d.Batch == 0 {
		d.Batch = 100
	}
	if d.Rest == 0 {
		d.Rest = 3
	}
	if d.Retention == 0 {
		d.Retention = 24 * time.Hour
	}
	var wrong error
	switch {
	case st == nil:
		wrong = errors.New("sweep: store: is nil")
	case d.Every < 0 || d.Batch < 0 || d.Retention < time.Millisecond || d.MaxAttempts < 0:
		wrong = fmt.Errorf("sweep: options: Every %v, Batch %d and MaxAttempts %d must not be negative, and Retention %v must be at least 1ms",
			d.Every, d.Batch, d.MaxAttempts, d.Retention)
	}
	if wrong != nil {
		return d, &semel.Error{Reason: semel.ErrInvalid, Cause: wrong}
	}
	return d, nil
}

// Run removes expired records and recovers expired claims, pass after pass, until
// ctx ends. Any number of processes may run it. It returns nil when ctx ends, and
// an error only for wrong options. If a pass fails, AfterPass gets its error, and
// the next pass tries again.
func Run(ctx context.Context, st store.Store, o *Options) error {
	d, err := o.withDefaults(st)
	if err != nil {
		return err
	}
	for {
		stats, err := Once(ctx, st, o)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is how Run ends
		}
		if d.AfterPass != nil {
			d.AfterPass(stats, err)
		}
		if !retry.Pause(ctx, d.Every) {
			return nil
		}
	}
}

// Once makes one pass. If some records could not be recovered, it goes on with the
// others, and the error has all the causes.
func Once(ctx context.Context, st store.Store, o *Options) (Stats, error) {
	var stats Stats
	d, err := o.withDefaults(st)
	if err != nil {
		return stats, err
	}
	s := sweeper{store: st, options: d}
	var errs []error
	pacer := pacer{factor: max(0, d.Rest)}
	for from := store.Cursor(""); ; {
		start := time.Now()
		res, err := st.Sweep(ctx, from, d.Batch)
		if err != nil {
			return stats, errors.Join(append(errs, &semel.Error{Reason: semel.ErrUnavailable, Cause: err})...)
		}
		stats.Deleted += res.Deleted
		for i := range res.Lapsed {
			if err := s.recover(ctx, &res.Lapsed[i], res.Now, &stats); err != nil {
				errs = append(errs, err)
			}
		}
		if from = res.Next; from == "" {
			return stats, errors.Join(errs...)
		}
		if err := pacer.rest(ctx, time.Since(start)); err != nil {
			return stats, errors.Join(append(errs, &semel.Error{Reason: semel.ErrCanceled, Cause: err})...)
		}
	}
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

// recover changes one expired claim as store.Decide says of the next call of its
// key.
func (s *sweeper) recover(ctx context.Context, r *store.Record, now time.Time, stats *Stats) error {
	call := store.Call{Policy: r.Policy, Fingerprint: r.Fingerprint, MaxAttempts: s.options.MaxAttempts}
	if strings.HasSuffix(r.Key.Operation, lapsed.RerunSuffix) {
		call.MaxAttempts = 0 // the outcome is kept under another key; crashed reruns must not end the others for good
	}
	d := store.Decide(r, &call, now)
	p := store.Proposal{
		Key: r.Key, State: store.Released, Policy: r.Policy, Owner: lapsed.NewOwner(), Holder: r.Holder, Fingerprint: r.Fingerprint,
		Attempt: r.Attempt, Keep: s.options.Retention, Error: lapsed.Text(r),
	}
	kind, count := semel.EventReleased, &stats.Released
	action := d.Action
	if action == store.Exhausted && d.Policy == store.Park {
		action, p.Error = store.DoPark, lapsed.ExhaustedText(r.Attempt, lapsed.LastText(r)) // as a call does with it
	}
	switch action {
	case store.Execute: // a reservation that nobody redeemed
		p.Error = "the reservation expired"
	case store.TakeOver:
	case store.DoPark:
		p.State, kind, count = store.Unknown, semel.EventParked, &stats.Parked
	case store.Exhausted:
		p.State, kind, count = store.Failed, semel.EventFailed, &stats.Failed
		o, err := lapsed.ExhaustedOutcome(r.Attempt, p.Error)
		if err != nil {
			return err
		}
		p.Outcome = o
	default:
		return nil // somebody has changed it since, or it is unreadable
	}
	f, err := retry.Do(ctx, func() (store.Found, error) { return s.store.Swap(ctx, r.Seen(), p) })
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && !f.Won:
		return nil // somebody was faster
	case err != nil:
		return &semel.Error{Reason: semel.ErrUnavailable, Operation: r.Key.Operation, Cause: err}
	}
	*count++
	if s.options.Observe != nil {
		s.options.Observe(ctx, semel.Event{
			Kind: kind, Operation: r.Key.Operation, Tenant: r.Key.Tenant, Key: r.Key.Short(),
			Policy: r.Policy, Attempt: r.Attempt, Err: errors.New(p.Error),
		})
	}
	return nil
}
