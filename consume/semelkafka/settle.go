package semelkafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// handle has the ledger do the work of those that are not decided. What is behind
// one that was decided in an earlier turn, and is not settled, waits: to a ledger
// nothing was done of that one yet.
func (b *batches) handle(ctx context.Context, batch []*work) error {
	run := make([]*work, 0, len(batch))
	now := time.Now()
	open := map[string]bool{} // lanes that have such a one
	for _, w := range batch {
		if w.decided {
			open[w.lane] = true
			continue
		}
		if w.lane != "" && open[w.lane] {
			w.disp = driver.Disposition{Action: driver.Hold, Reason: driver.ReasonInProgress}
			continue
		}
		if w.late(now, b.keep) {
			w.disp = driver.Disposition{Action: b.lateAction(), Reason: driver.ReasonLate,
				Err: fmt.Errorf("published %v ago; outcomes are kept for %v", now.Sub(w.m.Published).Round(time.Second), b.keep)}
			w.decided = true
			continue
		}
		run = append(run, w)
	}
	is, items := b.prepared(run)
	if len(run) == 0 {
		return nil
	}
	began := time.Now()
	handle := func(ctx context.Context) []driver.Result { return b.l.Handle(ctx, items) }
	if p, ok := b.l.(Preparer); ok {
		if is == nil {
			is = p.Prepare(ctx, items)
		}
		handle = func(ctx context.Context) []driver.Result { return b.besides(ctx, p, is) }
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
		down = down || w.disp.Reason == driver.ReasonUnavailable
		if !r.FromHandler {
			b.closes(r.Err)
		}
		b.observe(ctx, consume.Event{Kind: consume.EventDecided, Message: w.m, Disposition: w.disp, Took: took})
	}
	if down != b.outage {
		b.outage = down
		e := consume.Event{Kind: consume.EventResumed}
		for _, w := range run {
			if w.disp.Reason == driver.ReasonUnavailable {
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

// late reports whether nobody knows any more if the message was handled.
func (w *work) late(now time.Time, keep time.Duration) bool {
	return keep > 0 && !w.m.Published.IsZero() && now.Sub(w.m.Published) > keep
}

// hold keeps a message for a while, and its lane with it.
func (b *batches) hold(w *work, d time.Duration) {
	lane := w.lane
	if lane == "" {
		lane = "\x00" + w.m.Origin.ID // its own: no lane that a ledger would name
	}
	h := b.held[lane]
	if h == nil {
		h = &heldLane{}
		b.held[lane] = h
	}
	if due := time.Now().Add(d); due.After(h.due) && !slices.ContainsFunc(h.works, w.waitsFor) {
		h.due = due
	}
	h.works = append(h.works, w)
}

// waitsFor reports whether v is before w in its partition: when w is looked at
// again is then for v to say, as w would only be told once more to wait.
func (w *work) waitsFor(v *work) bool {
	return v.p == w.p && v.it.Origin.Offset < w.it.Origin.Offset
}

// The pauses between settlements that fail, and how long one may take.
const (
	firstSettle   = 20 * time.Millisecond
	lastSettle    = 5 * time.Second
	settleTimeout = 10 * time.Second
)

// settleAll settles a batch. One that gets no answer is the last for which the
// brokers, or the ledger, are asked in this turn: for all partitions wait, and the
// end of the drain. So those that have failed before come behind the others.
func (b *batches) settleAll(ctx context.Context, batch []*work) {
	b.slow = false
	slices.SortStableFunc(batch, func(v, w *work) int { return cmp.Compare(v.failed, w.failed) })
	for _, w := range batch {
		b.settle(ctx, w)
	}
}

// settle tells the brokers, and the ledger, what was decided of a message: the
// copy comes first, the offset last.
func (b *batches) settle(ctx context.Context, w *work) {
	if !w.decided {
		if !b.left(ctx, w) {
			b.hold(w, w.disp.Delay)
		}
		return
	}
	if !w.effect && b.slow {
		if !b.left(ctx, w) {
			b.hold(w, firstSettle)
		}
		return
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
		_ = w.Nak(ctx, 0) // it is over, if Ack has not ended it
		b.observe(ctx, consume.Event{Kind: consume.EventGivenUp, Message: w.m, Disposition: w.disp, Err: err})
	default:
		b.observe(ctx, consume.Event{Kind: consume.EventSettleFailed, Message: w.m, Disposition: w.disp, Err: err})
		if !b.left(ctx, w) {
			b.hold(w, min(firstSettle<<min(w.failed, 10), lastSettle))
			w.failed++
		}
	}
}

// pass is the end of a message without an effect.
func (b *batches) pass(ctx context.Context, w *work) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	defer func() { b.slow = ctx.Err() != nil }()
	if err := b.send(ctx, w); err != nil || w.passed {
		return err
	}
	err := b.l.Pass(ctx, w.it)
	w.passed = err == nil
	b.closes(err)
	return err
}

// closes ends the source if the ledger says that it is at its end: to ask again
// is in vain.
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
	if err := w.Forward(ctx, to, driver.Letter(w.m, w.disp, semel.Operation(b.s.group))); err != nil {
		return err
	}
	w.forwarded = true
	return nil
}
