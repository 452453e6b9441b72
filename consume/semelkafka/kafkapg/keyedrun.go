package kafkapg

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store/pgstore"
)

// keyedRun is one batch.
type keyedRun struct {
	*keyed
	items []semelkafka.Item
	batch []consume.Run
	room
	// blocked are order keys, and the first message that what is behind it must
	// not overtake: it was alone, and has failed, or may yet, at its COMMIT; or
	// it comes again, as one whose key is in flight elsewhere.
	blocked map[string]int
	next    *pgstore.PrefetchedBatch // of which it is the work

	care  *care // of a message that is alone, if care is to be taken; else nil
	noted bool  // its try was
}

// room is what a batch knows of its calls.
type room struct {
	calls []semel.Call
	of    []int              // their places in the batch
	ms    []*consume.Message // of the calls
	said  []error            // by the handler, of a message that was alone
	ran   []int              // the attempt, of a message that was alone
}

// Handle implements semelkafka.Ledger.
func (l *keyed) Handle(ctx context.Context, batch []semelkafka.Item) []consume.Run {
	return l.Prepare(ctx, batch).Handle(ctx)
}

// Prepare implements semelkafka.Preparer.
func (l *keyed) Prepare(ctx context.Context, batch []semelkafka.Item) semelkafka.Prepared {
	r := l.newRun(batch)
	r.next = l.prefetcher.Prefetch(ctx, r.calls)
	return (*preparedRun)(r)
}

// preparedRun implements semelkafka.Prepared.
type preparedRun keyedRun

// Handle implements semelkafka.Prepared.
func (p *preparedRun) Handle(ctx context.Context) []consume.Run {
	r := (*keyedRun)(p)
	defer r.giveBack()
	careful, err := r.begin(ctx, r.items)
	if err != nil || careful {
		r.next.Drop()
	}
	switch {
	case err != nil:
		return unavailable(r.items, err)
	case careful:
		return r.carefully(ctx, r.items)
	}
	return r.ends(r.next.Run(ctx, r.run))
}

// Drop implements semelkafka.Prepared.
func (p *preparedRun) Drop() {
	p.next.Drop()
	(*keyedRun)(p).giveBack()
}

// newRun finds the calls of a batch.
func (l *keyed) newRun(batch []semelkafka.Item) *keyedRun {
	r := &keyedRun{
		keyed: l, items: batch, blocked: map[string]int{}, batch: make([]consume.Run, len(batch)), room: l.roomFor(len(batch)),
	}
	for i, it := range batch {
		c, err := l.identify(it.Message)
		if err != nil {
			r.batch[i].Err = err
			r.blockBehind(len(r.calls)-1, err, it.OrderKey)
			continue
		}
		r.calls, r.of, r.ms = append(r.calls, c), append(r.of, i), append(r.ms, it.Message)
	}
	r.said, r.ran = r.said[:len(r.calls)], r.ran[:len(r.calls)]
	return r
}

// roomFor is empty room for n calls, which has nothing left in it.
func (l *keyed) roomFor(n int) (r room) {
	l.mu.Lock()
	if last := len(l.rooms) - 1; last >= 0 {
		r, l.rooms = l.rooms[last], l.rooms[:last]
	}
	l.mu.Unlock()
	return room{slices.Grow(r.calls, n), slices.Grow(r.of, n), slices.Grow(r.ms, n), slices.Grow(r.said, n), slices.Grow(r.ran, n)}
}

// giveBack is when nobody looks at the calls any more.
func (r *keyedRun) giveBack() {
	clear(r.calls)
	clear(r.ms)
	clear(r.said)
	clear(r.ran)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rooms = append(r.rooms, room{r.calls[:0], r.of[:0], r.ms[:0], r.said[:0], r.ran[:0]})
	r.room = room{}
}

// ends are those of the batch.
func (r *keyedRun) ends(of []pgstore.Ended) []consume.Run {
	for n, e := range of {
		r.batch[r.of[n]] = r.end(n, e)
	}
	return r.batch
}

// run does the work of those that are new.
func (r *keyedRun) run(ctx context.Context, fresh []*pgstore.NewCall) error {
	r.block(fresh)
	goes := make([]*pgstore.NewCall, 0, len(fresh))
	ms := make([]*consume.Message, 0, len(fresh))
	for _, f := range fresh {
		m := r.ms[f.Index]
		if first, is := r.blocked[m.OrderKey]; is && first < f.Index {
			r.said[f.Index] = errBefore
			f.Err = semel.NoEffect(errBefore)
			continue
		}
		goes, ms = append(goes, f), append(ms, m)
	}
	if len(goes) == 0 {
		return nil
	}
	tx, ok := pgstore.TxFrom(ctx)
	if !ok {
		return errors.New("kafkapg: there is no transaction")
	}
	if len(fresh) > 1 {
		return r.h.safely(ctx, tx, ms)
	}
	return r.alone(ctx, goes[0], func() error { return r.h.safely(ctx, tx, ms) })
}

// block notes which messages before one that is fresh come again.
func (r *keyedRun) block(fresh []*pgstore.NewCall) {
	for i := range fresh[len(fresh)-1].Index {
		if r.said[i] == nil && r.ran[i] == 0 { // else it was fresh, too
			r.blockBehind(i, r.next.Err(i), r.ms[i].OrderKey)
		}
	}
}

// blockBehind has what is behind a place wait, if a message ended there so that
// it comes again.
func (r *keyedRun) blockBehind(at int, err error, lane string) {
	if err == nil || lane == "" {
		return
	}
	if first, is := r.blocked[lane]; is && first <= at {
		return
	}
	switch consume.Decide(consume.Run{Err: err}, nil).Action {
	case consume.Hold, consume.Retry:
		r.blocked[lane] = at
	}
}

// alone does the work of one message. It is this message's fault if it fails.
func (r *keyedRun) alone(ctx context.Context, f *pgstore.NewCall, work func() error) (err error) {
	m := r.ms[f.Index]
	died := r.care.died(m)
	if r.noted { // the server has it run again
		died--
	}
	n := max(f.Execution.Attempt(), r.undone[m.Origin.ID]+1) + died
	switch {
	case r.most < 0 || n <= r.most:
		if err := r.note(ctx, m); err != nil {
			r.said[f.Index], r.ran[f.Index] = err, 0
			return semel.NoEffect(err)
		}
		r.ran[f.Index] = n
		err = limited(work(), n, r.most)
	case died > 0:
		r.ran[f.Index] = n - 1
		err = (&cutOffError{died, n - 1}).failure()
	default:
		r.ran[f.Index] = n
		err = exhausted(r.most, errUndone)
	}
	r.said[f.Index] = err
	if m.OrderKey != "" { // whatever it says: that it commits is not known before the batch has ended
		r.blocked[m.OrderKey] = f.Index
	}
	return err
}

// note notes a try, once.
func (r *keyedRun) note(ctx context.Context, m *consume.Message) error {
	if r.care == nil || r.noted {
		return nil
	}
	err := r.care.try(ctx, m, r.most)
	r.noted = err == nil && r.most >= 0
	return err
}

var errUndone = errors.New("its transaction did not commit")

// end is how a call ended, for consume.Decide.
func (r *keyedRun) end(n int, e pgstore.Ended) consume.Run {
	m, said := r.ms[n], r.said[n]
	if errors.Is(said, errBefore) && e.Err != nil {
		return consume.Run{Err: waits("")}
	}
	if e, ok := errors.AsType[*noteError](said); ok {
		return consume.Run{Err: e.end(r.calls[n].Operation)}
	}
	if r.ran[n] > 0 && (errors.Is(e.Err, semel.ErrUnavailable) || errors.Is(e.Err, semel.ErrCanceled)) { // that may be its own doing
		r.undone[m.Origin.ID]++
	} else {
		delete(r.undone, m.Origin.ID)
	}
	end := consume.Run{Err: e.Err, Replayed: e.Replayed, Attempt: r.ran[n], Handlers: own(e.Err, said)}
	if end.Handlers && driver.IsNoEffect(said) { // which the store does not pass on
		end.Err = said
	}
	return end
}

// own reports whether an error is the handler's: both may hold a *semel.Error,
// for handlers make calls too.
func own(err, said error) bool {
	if err == nil || said == nil {
		return false
	}
	e, ok := errors.AsType[*semel.Error](err)
	if !ok {
		return true
	}
	s, _ := errors.AsType[*semel.Error](said)
	return e == s
}

// identify finds a message's call.
func (l *keyed) identify(m *consume.Message) (c semel.Call, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &semel.Error{Reason: semel.ErrInvalid, Cause: fmt.Errorf("the CallFunc panicked: %v", v)}
		}
	}()
	c, err = l.call(m)
	if err != nil && !errors.Is(err, consume.ErrNoKey) && !errors.Is(err, consume.ErrRejected) {
		err = &semel.Error{Reason: semel.ErrInvalid, Operation: c.Operation, Cause: err}
	}
	if err == nil {
		m.Key = c.Key
	}
	return c, err
}
