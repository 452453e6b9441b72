package saga

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/callback"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

// WorkOptions configures Work. Nil and zero fields mean the defaults.
type WorkOptions struct {
	// Concurrency is how many sagas run at the same time: 16 by default.
	Concurrency int
	// Every is how often Work asks the store for sagas that are due: 1 s by default.
	Every time.Duration
	// Drain is how long the running steps may go on after Work's context has ended, before
	// their contexts end, too: 30 s by default.
	Drain time.Duration
	// OnError gets the errors of the store. Work goes on after them. The errors of
	// sagas are events of the Guard (semel.Options.Observe). A panic of OnError is logged
	// and has no effect. Nil: none.
	OnError func(ctx context.Context, err error)
}

// report passes an error of the store on.
func (o *WorkOptions) report(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && o.OnError != nil {
		callback.Report(ctx, "saga: OnError", func() { o.OnError(ctx, err) })
	}
}

// Work runs the sagas of this definition that are due: the saga was started, its process
// died, its pause is over, or its event has come. Any number of processes may
// work.
//
// When ctx ends, no further step starts, and running ones may go on for Drain. Then their
// contexts end: a Parked step that returns because of that is in doubt, and its saga stuck.
// Work returns nil after they have ended; compensations of a saga that has turned back go
// on first.
func (s *Saga[In, Out]) Work(ctx context.Context, o *WorkOptions) error {
	var d WorkOptions
	if o != nil {
		d = *o
	}
	if d.Concurrency == 0 {
		d.Concurrency = 16
	}
	if d.Every == 0 {
		d.Every = time.Second
	}
	d.Drain = cmp.Or(d.Drain, 30*time.Second)
	if d.Concurrency < 0 || d.Every < 0 || d.Drain < 0 {
		return &semel.Error{Reason: semel.ErrInvalid, Operation: s.name, Cause: fmt.Errorf("saga: Concurrency %d, Every %v and Drain %v must not be negative", d.Concurrency, d.Every, d.Drain)}
	}
	slots := make(chan struct{}, d.Concurrency)
	ended := make(chan struct{}, 1)
	var running sync.WaitGroup
	defer running.Wait()
	find := finder{core: &s.core, refused: map[store.Key]time.Time{}}
	for ctx.Err() == nil {
		due, more, err := find.due(ctx, d.Concurrency-len(slots))
		d.report(ctx, err)
		for _, t := range due {
			slots <- struct{}{}
			running.Go(func() {
				defer func() {
					<-slots
					select {
					case ended <- struct{}{}:
					default:
					}
				}()
				d.report(ctx, s.work(ctx, t, d.Drain))
			})
		}
		if more {
			continue
		}
		timer := time.NewTimer(d.Every)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-s.nudge:
		case <-ended:
		}
		timer.Stop()
	}
	return nil
}

// maxRefused is how many refused sagas a finder remembers.
const maxRefused = 1000

// finder finds the sagas that are due for one worker. It remembers which of them were
// refused by a part of the store, and when, so that the sagas of other parts go first.
type finder struct {
	*core
	refused map[store.Key]time.Time
}

// due finds sagas that are due, and makes their timers due later, so that each is found
// once. If a part of the store fails, it returns the sagas of the others with the error.
// more reports whether there may be sagas that it has not tried.
func (f *finder) due(ctx context.Context, limit int) (due []store.Timer, more bool, err error) {
	if limit <= 0 {
		return nil, false, nil
	}
	known, asked := len(f.refused), limit+len(f.refused)
	var found []store.Timer
	var partErr error
	err = retry.Ask(ctx, storeTimeout, func(ctx context.Context) error {
		found, _, partErr = f.timers.DueTimers(ctx, f.key("", "").Operation, 0, asked)
		if len(found) > 0 { // the sagas of a part that answers do not wait for the others
			return nil
		}
		return partErr
	})
	errs := []error{cmp.Or(err, partErr)}
	more = len(found) == asked
	if errs[0] == nil || errors.Is(errs[0], store.ErrCorrupt) { // each part has answered
		f.forgetExcept(found)
	}
	slices.SortStableFunc(found, func(a, b store.Timer) int { return f.refused[a.Key].Compare(f.refused[b.Key]) })
	found = found[:min(len(found), limit)]
	for i, c := range f.postpone(ctx, found) {
		t := found[i]
		errs = append(errs, c.err)
		delete(f.refused, t.Key)
		switch {
		case c.err != nil:
			if len(f.refused) < maxRefused {
				f.refused[t.Key] = time.Now()
			}
		case c.set: // otherwise another worker has it
			t.Version = c.version
			due = append(due, t)
		}
	}
	return due, more && (len(due) == limit || len(f.refused) > known), errors.Join(errs...)
}

// forgetExcept forgets the refused sagas that are not due any more.
func (f *finder) forgetExcept(due []store.Timer) {
	before := f.refused
	f.refused = map[store.Key]time.Time{}
	for _, t := range due {
		if at, ok := before[t.Key]; ok {
			f.refused[t.Key] = at
		}
	}
}

// changed is the answer to the change of a timer.
type changed struct {
	version store.Owner
	set     bool
	err     error
}

// postpone makes timers due later, all at the same time.
func (f *finder) postpone(ctx context.Context, due []store.Timer) []changed {
	answers := make([]changed, len(due))
	var all sync.WaitGroup
	for i, t := range due {
		all.Go(func() {
			c := changed{version: protocol.NewOwner()}
			c.set, c.err = f.setTimer(ctx, t.Key, t.Version, c.version, f.lease)
			answers[i] = c
		})
	}
	all.Wait()
	return answers
}

// work looks at a saga whose timer was due, and runs it if it can go on. A worker that stops
// ends its look first, because nobody else may look soon.
func (s *Saga[In, Out]) work(ctx context.Context, t store.Timer, drain time.Duration) error {
	look := context.WithoutCancel(ctx)
	f, err := s.get(look, t.Key)
	if errors.Is(err, store.ErrNotFound) {
		return s.dropTimer(look, t.Key, t.Version)
	}
	if err != nil {
		return err
	}
	r := &f.Record
	d := store.Decide(r, &store.Call{Token: r.Created}, f.Now)
	switch d.Action {
	case store.Replay, store.ReplayFailure, store.Expired:
		return s.dropTimer(look, t.Key, t.Version)
	case store.InProgress:
		_, err := s.setTimer(look, t.Key, t.Version, watched(r.Fence), d.Until.Sub(f.Now))
		return err
	case store.Execute, store.TakeOver:
	default:
		_, err := s.setTimer(look, t.Key, t.Version, protocol.NewOwner(), stuckLook)
		return err
	}
	call := semel.Call{Operation: s.name, Tenant: t.Key.Tenant, Key: t.Key.Value, Payload: semel.NoPayload()}
	if call.Tenant == "" {
		call.Tenant = semel.Shared
	}
	// The errors of the run are events of the Guard, and the timer brings the saga back.
	_, _ = s.visit(ctx, call, r.Created, t.Version, nil, func(run context.Context, x *semel.Execution) (store.Outcome, error) {
		return s.run(ctx, run, drain, x, nil)
	})
	return nil
}
