package semelkafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// handle has the ledger handle the messages that are not decided. A message
// waits if an earlier one of its order key was decided in an earlier turn and is not
// settled, because the ledger has no record of that one yet.
func (b *batches) handle(ctx context.Context, batch []*work) error {
	run := make([]*work, 0, len(batch))
	now := time.Now()
	open := map[string]bool{} // order keys with a decided, unsettled message
	for _, w := range batch {
		if w.decided {
			open[w.orderKey] = true
			continue
		}
		if w.orderKey != "" && open[w.orderKey] {
			w.disp = driver.Disposition{Action: driver.Hold, Reason: driver.ReasonInProgress}
			continue
		}
		if b.late(w, now) {
			w.disp = driver.Disposition{Action: driver.Quarantine, Reason: driver.ReasonLate,
				Err: fmt.Errorf("published %v ago; outcomes are kept for %v", now.Sub(w.m.Published).Round(time.Second), b.keep)}
			w.decided = true
			continue
		}
		run = append(run, w)
	}
	prepared, items := b.prepared(run)
	if len(run) == 0 {
		return nil
	}
	began := time.Now()
	handle := func(ctx context.Context) []driver.Result { return b.l.Handle(ctx, items) }
	if p, ok := b.l.(Preparer); ok {
		if prepared == nil {
			prepared = p.Prepare(ctx, items)
		}
		handle = func(ctx context.Context) []driver.Result { return b.handlePrepared(ctx, p, prepared) }
	}
	ends := handle(ctx)
	took := time.Since(began)
	down := false
	for i, w := range run {
		r := ends[i]
		r.Tries = w.tries
		w.tries++
		w.disp = driver.Decide(r, b.policy())
		w.effect = r.Err == nil
		w.decided = w.disp.Action != driver.Hold && w.disp.Action != driver.Retry
		down = down || isOutage(&w.disp)
		if !r.FromHandler {
			b.closes(r.Err)
		}
		b.observe(ctx, consume.Event{Kind: consume.EventDecided, Message: w.m, Disposition: w.disp, Took: took})
	}
	if down != b.outage {
		b.outage = down
		e := consume.Event{Kind: consume.EventResumed}
		for _, w := range run {
			if isOutage(&w.disp) {
				e = consume.Event{Kind: consume.EventOutage, Message: w.m, Disposition: w.disp, Err: w.disp.Err}
				break
			}
		}
		b.observe(ctx, e)
	}
	for _, w := range run {
		if w.disp.Reason == driver.ReasonRejected {
			return fmt.Errorf("semelkafka: %w", w.disp.Err)
		}
	}
	return nil
}

// isOutage reports whether a message waits because the ledger does not answer. If only a
// part of it is away, other messages are served.
func isOutage(d *driver.Disposition) bool {
	return d.Reason == driver.ReasonUnavailable && store.Affects(d.Err) == store.ExtentStore
}

// late reports whether the ledger's record of the message may be deleted. A message that an
// operator has sent back runs all the same, as in a Consumer.
func (b *batches) late(w *work, now time.Time) bool {
	if why, _ := w.m.Header(consume.RedriveHeader); why != "" && b.opt.Reopen != nil {
		return false
	}
	return b.keep > 0 && !w.m.Published.IsZero() && now.Sub(w.m.Published) > b.keep
}

// hold delays a message and the later messages of its order key.
func (b *batches) hold(w *work, d time.Duration) {
	key := w.orderKey
	if key == "" {
		key = "\x00" + w.m.Origin.ID // an order key of its own, with a name that no ledger uses
	}
	h := b.held[key]
	if h == nil {
		h = &heldKey{}
		b.held[key] = h
	}
	if due := time.Now().Add(d); due.After(h.due) && !slices.ContainsFunc(h.works, w.waitsFor) {
		h.due = due
	}
	h.works = append(h.works, w)
}

// waitsFor reports whether v precedes w in its partition: then v decides when w
// is tried again, because an earlier try of w would only wait again.
func (w *work) waitsFor(v *work) bool {
	return v.p == w.p && v.it.Origin.Offset < w.it.Origin.Offset
}

// The pauses between failed settlements, and the time limit of one.
const (
	firstSettle   = 20 * time.Millisecond
	longestSettle = 5 * time.Second
	settleTimeout = 10 * time.Second
)

// settleAll settles a batch. After one settlement without an answer it asks
// neither the brokers nor the ledger again in this turn, because all
// partitions, and the end of the drain, wait for it. So order keys that failed before
// come last. A copy waits until the earlier messages of its order key are settled, so
// that the dead letters of an order key are in order.
func (b *batches) settleAll(ctx context.Context, batch []*work) {
	b.slow = false
	failed := map[string]int{} // by order key: the most failed settlements of a message
	for _, w := range batch {
		failed[w.orderKey] = max(failed[w.orderKey], w.failed)
	}
	failures := func(w *work) int {
		if w.orderKey == "" {
			return w.failed
		}
		return failed[w.orderKey]
	}
	slices.SortStableFunc(batch, func(v, w *work) int { return cmp.Compare(failures(v), failures(w)) })
	open := map[string]bool{} // order keys with a message that is not settled
	for _, w := range batch {
		wait := w.decided && !w.effect && open[w.orderKey]
		if wait && !b.left(ctx, w) {
			b.hold(w, firstSettle)
		}
		if !wait && !b.settle(ctx, w) && w.orderKey != "" {
			open[w.orderKey] = true
		}
	}
}

// settle tells the brokers and the ledger what was decided: the copy first, the
// offset last. It reports whether the message is settled, or gone.
func (b *batches) settle(ctx context.Context, w *work) bool {
	if !w.decided {
		if !b.left(ctx, w) {
			b.hold(w, w.disp.Delay)
		}
		return false
	}
	if !w.effect && b.slow {
		if !b.left(ctx, w) {
			b.hold(w, firstSettle)
		}
		return false
	}
	err := error(nil)
	if !w.effect {
		err = b.pass(ctx, w)
	}
	if err == nil {
		err = w.Ack(ctx)
	}
	switch {
	case err == nil:
		b.observe(ctx, consume.Event{Kind: consume.EventSettled, Message: w.m, Disposition: w.disp})
	case errors.Is(err, driver.ErrGone):
		_ = w.Nak(ctx, 0) // in case Ack has not ended the delivery
		b.observe(ctx, consume.Event{Kind: consume.EventGivenUp, Message: w.m, Disposition: w.disp, Err: err})
	default:
		b.observe(ctx, consume.Event{Kind: consume.EventSettleFailed, Message: w.m, Disposition: w.disp, Err: err})
		if !b.left(ctx, w) {
			b.hold(w, min(firstSettle<<min(w.failed, 10), longestSettle))
			w.failed++
		}
		return false
	}
	return true
}

// pass ends a message without an effect.
func (b *batches) pass(ctx context.Context, w *work) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	defer func() { b.slow = ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) }() // the ledger may have a shorter limit
	if err := b.send(ctx, w); err != nil || w.passed {
		return err
	}
	err = b.l.Pass(ctx, w.it)
	w.passed = err == nil
	b.closes(err)
	return err
}

// closes ends the source if the ledger is closed, because asking again is
// useless.
func (b *batches) closes(err error) {
	if errors.Is(err, driver.ErrClosed) {
		b.s.fail(err)
	}
}

// send sends the copy of a message, if there is to be one.
func (b *batches) send(ctx context.Context, w *work) error {
	to := w.disp.Action
	if to != driver.DeadLetter && to != driver.Quarantine || w.forwarded {
		return nil
	}
	if err := w.Forward(ctx, to, driver.Letter(w.m, w.disp, b.s.group)); err != nil {
		return err
	}
	w.forwarded = true
	return nil
}
