package semel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// SweepOptions configures a sweep. Nil and zero fields mean the defaults.
type SweepOptions struct {
	// Every is the pause between two passes: 1 min by default.
	Every time.Duration
	// Batch is how many records one step removes or recovers at most: 100 by
	// default. Small steps hold no lock for long.
	Batch int
	// Rest is how many times as long as its steps a pass rests between them:
	// 3 by default, so that it keeps the store busy for a quarter of the time,
	// and callers hardly notice. Then it removes a quarter of the records a
	// second that the store could delete, or more: no rest exceeds 1 s.
	// Negative: it does not rest.
	Rest int
	// Retention is how long a recovered record is kept: 24 h by default. Give
	// it the Guards' own.
	Retention time.Duration
	// MaxAttempts is that of the Guards, so that a lapsed claim that was the
	// last attempt ends as it would there. Zero: no limit.
	MaxAttempts int
	// Observe is told of each recovered record. Nil: nobody is.
	Observe func(ctx context.Context, e Event)
	// Swept is told what each pass did, and what stopped it, if anything
	// did. Nil: nobody is.
	Swept func(s SweepStats, err error)
}

// SweepStats is what a pass did.
type SweepStats struct {
	Deleted  int // records that had expired
	Released int // lapsed claims and reservations that may run again
	Parked   int // lapsed claims whose effect is not known
	Failed   int // lapsed claims that were the last attempt
}

func (o *SweepOptions) withDefaults() (SweepOptions, error) {
	var d SweepOptions
	if o != nil {
		d = *o
	}
	setDefault(&d.Every, time.Minute)
	setDefault(&d.Batch, 100)
	setDefault(&d.Rest, 3)
	setDefault(&d.Retention, 24*time.Hour)
	if d.Every < 0 || d.Batch < 0 || d.Retention < 0 || d.MaxAttempts < 0 {
		return d, invalid("", fmt.Errorf("sweep options: Every %v, Batch %d, Retention %v and MaxAttempts %d must not be negative",
			d.Every, d.Batch, d.Retention, d.MaxAttempts))
	}
	return d, nil
}

// Sweep removes what has expired, and recovers what has lapsed, pass after
// pass until ctx ends: the worker that deals with crashed processes whose
// callers never come again. Any number may run, anywhere. It returns nil when
// ctx ends, and an error only for bad options; a pass that fails is reported
// to Swept, and the next one tries again.
func Sweep(ctx context.Context, st store.Store, o *SweepOptions) error {
	d, err := o.withDefaults()
	if err == nil {
		_, err = New(st, &Options{Retention: d.Retention})
	}
	if err != nil {
		return err
	}
	for {
		stats, err := SweepOnce(ctx, st, o)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // to be stopped is how it ends
		}
		if d.Swept != nil {
			d.Swept(stats, err)
		}
		if !pause(ctx, d.Every) {
			return nil
		}
	}
}

// SweepOnce is one pass of Sweep.
func SweepOnce(ctx context.Context, st store.Store, o *SweepOptions) (SweepStats, error) {
	var stats SweepStats
	d, err := o.withDefaults()
	if err != nil {
		return stats, err
	}
	if st == nil {
		return stats, invalid("", errors.New("store: is nil"))
	}
	g, err := New(st, &Options{Retention: d.Retention, Observe: d.Observe})
	if err != nil {
		return stats, err
	}
	var errs []error
	rest := rest{times: max(0, d.Rest)}
	for from := store.Cursor(""); ; {
		start := time.Now()
		res, err := st.Sweep(ctx, from, d.Batch)
		if err != nil {
			return stats, errors.Join(append(errs, &Error{Reason: ErrUnavailable, Cause: err})...)
		}
		stats.Deleted += res.Deleted
		for i := range res.Lapsed {
			if err := g.recover(ctx, &res.Lapsed[i], res.Now, d.MaxAttempts, &stats); err != nil {
				errs = append(errs, err)
			}
		}
		if from = res.Next; from == "" {
			return stats, errors.Join(errs...)
		}
		if err := rest.after(ctx, time.Since(start)); err != nil {
			return stats, errors.Join(append(errs, &Error{Reason: ErrUnavailable, Cause: err})...)
		}
	}
}

const (
	longestRest  = time.Second // whatever a step took, the pass goes on
	shortestRest = time.Millisecond
)

// rest is what a pass owes to those whom it is in the way of.
type rest struct {
	times int // as long as the work
	owed  time.Duration
}

// after rests for a step that took so long. Short rests are taken together.
func (r *rest) after(ctx context.Context, took time.Duration) error {
	if r.times == 0 || took < longestRest/time.Duration(r.times) {
		r.owed += time.Duration(r.times) * took
	} else { // what it would come to may be more than a time can hold
		r.owed += longestRest
	}
	if r.owed < shortestRest {
		return nil
	}
	t := time.NewTimer(min(r.owed, longestRest))
	defer t.Stop()
	r.owed = 0
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recover changes one lapsed record as Decide says of the next call of its key.
func (g *Guard) recover(ctx context.Context, r *store.Record, now time.Time, maxAttempts int, stats *SweepStats) error {
	as := store.Call{Policy: r.Policy, Fingerprint: r.Fingerprint, MaxAttempts: maxAttempts}
	if strings.HasSuffix(r.Key.Operation, rerunSuffix) {
		as.MaxAttempts = 0 // the outcome is there: reruns that crashed must not end the others for good
	}
	d := store.Decide(r, &as, now)
	p := g.change(r, store.Released, lapsedText(r))
	count := &stats.Released
	action := d.Action
	if action == store.Exhausted && d.Policy == Park {
		action, p.Error = store.DoPark, exhaustedText(r) // as a call does with it
	}
	switch action {
	case store.Execute: // a reservation that nobody redeemed
		p.Error = "the reservation lapsed"
	case store.TakeOver:
	case store.DoPark:
		p.State, count = store.Unknown, &stats.Parked
	case store.Exhausted:
		p.State, count = store.Failed, &stats.Failed
		o, err := exhaustedFailure(r.Attempt, p.Error).outcome()
		if err != nil {
			return err
		}
		p.Outcome = o
	default:
		return nil // no longer lapsed, or unreadable: not a sweep's to change
	}
	f, err := send(ctx, func() (store.Found, error) { return g.st.Swap(ctx, r.Seen(), p) })
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && !f.Won:
		return nil // somebody was faster
	case err != nil:
		return &Error{Reason: ErrUnavailable, Operation: Operation(r.Key.Operation), Cause: err}
	}
	*count++
	g.observe(ctx, Event{Kind: EventRecovered, Policy: r.Policy, Attempt: r.Attempt, Err: errors.New(p.Error)}, r.Key)
	return nil
}
