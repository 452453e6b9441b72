package semelkafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// MaxBatch is the largest number of new messages that ServeBatches handles at
// once.
const MaxBatch = 1000

// ServeBatches takes all messages that have arrived, up to [MaxBatch], has the
// ledger handle them together, and goes on with the next, until ctx ends. The
// running batch then has Options.Drain to end, 30 s by default, and the rest is
// left to the next member. It returns nil, or an error as
// consume.Consumer.Serve does, but it waits without a limit for a handler that
// ignores the end of its context. While the ledger does not answer, it takes no
// message.
//
// It uses Backoff, AckFailures, Drain and Observe of consume.Options, and, if
// the ledger has a method Retention() time.Duration, also Retention and
// AllowShortRetention. MaxAttempts and Reopen are the ledger's.
//
// The order is: copy to the dead letters, record in the ledger, commit to
// Kafka. The offsets in Kafka only serve to watch the lag. A Source can be
// served once in this way.
func (s *Source) ServeBatches(ctx context.Context, l Ledger, o *consume.Options) error {
	b := &batches{s: s, l: l, held: map[string]*heldKey{}}
	if o != nil {
		b.opt = *o
	}
	if r := b.opt.Retention; r != 0 && r < time.Second {
		return fmt.Errorf("semelkafka: Retention: is %v; it must be at least 1s, or zero for the ledger's", r)
	}
	if b.opt.Drain < 0 {
		return fmt.Errorf("semelkafka: Drain: is %v; it must not be negative", b.opt.Drain)
	}
	b.opt.Drain = cmp.Or(b.opt.Drain, 30*time.Second)
	if b.opt.Backoff == nil {
		b.opt.Backoff = consume.Backoff
	}
	r, forgets := l.(interface{ Retention() time.Duration })
	if forgets {
		if b.keep = cmp.Or(b.opt.Retention, r.Retention()); b.keep > r.Retention() {
			return fmt.Errorf("semelkafka: Retention: is %v, but the ledger keeps outcomes for %v; leave it zero, or keep them longer", b.keep, r.Retention())
		}
	}
	info, err := s.Info(ctx)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the caller ended it during the start
	}
	if err != nil {
		return err
	}
	if forgets && !b.opt.AllowShortRetention && info.Horizon > b.keep {
		return fmt.Errorf("semelkafka: Retention: is %v, but the topics keep messages for longer, so that a message may be redelivered after its outcome was "+
			"deleted; keep outcomes longer, or set AllowShortRetention to move such messages to the quarantine", b.keep)
	}
	s.mu.Lock()
	served := s.ledger != nil || s.client != nil
	if !served {
		s.ledger = l
	}
	s.mu.Unlock()
	if served {
		return errors.New("semelkafka: the source was served before; make a new one")
	}
	return b.loop(ctx)
}

// batches is one ServeBatches. All of it belongs to the goroutine of the loop.
type batches struct {
	s    *Source
	l    Ledger
	opt  consume.Options
	keep time.Duration // how long the ledger keeps its records; zero: for ever

	held   map[string]*heldKey
	ahead  *ahead        // nil: none
	pause  time.Duration // after a failure of the brokers; zero: none
	outage bool          // the ledger does not answer
	slow   bool          // a settlement of this turn timed out
}

// heldKey holds the messages of an order key that wait.
type heldKey struct {
	works []*work
	due   time.Time
}

// work is a message in this Serve.
type work struct {
	*delivery
	it       Item
	orderKey string

	tries     int
	decided   bool
	effect    bool // it had an effect, or its end is in the ledger
	disp      driver.Disposition
	forwarded bool
	passed    bool
	failed    int // settlements
}

// newWorks makes the works of deliveries.
func newWorks(ds []driver.Delivery) []*work {
	works := make([]*work, len(ds))
	for i, d := range ds {
		d := d.(*delivery)
		works[i] = &work{delivery: d, it: Item{Message: d.m, Partition: d.p.ledgerID, From: d.from, LeaderEpoch: d.r.LeaderEpoch}}
	}
	return works
}

// compareWorks is the order of a batch: by partition and offset.
func compareWorks(v, w *work) int {
	return cmp.Or(v.p.compare(w.p.partitionID), cmp.Compare(v.it.Origin.Offset, w.it.Origin.Offset))
}

func (b *batches) loop(ctx context.Context) error {
	hctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-ctx.Done():
			select {
			case <-time.After(b.opt.Drain):
				cancel()
			case <-over:
			}
		case <-over:
		}
	}()
	defer b.giveUp(ctx)
	for ctx.Err() == nil {
		fresh, err := b.next(ctx)
		if err != nil {
			return err
		}
		batch := b.gather(ctx, fresh)
		err = b.handle(hctx, batch)
		b.settleAll(hctx, batch)
		if err != nil {
			return err
		}
	}
	return nil
}

// The pauses of the loop after a failure of the brokers, and between two checks
// whether held messages were taken away.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 10 * time.Second
	revokedPoll  = 100 * time.Millisecond
)

// next takes messages that have arrived, or returns none when a held one is
// due. An error ends the loop.
func (b *batches) next(ctx context.Context) ([]*work, error) {
	wait, cancel := ctx, context.CancelFunc(func() {})
	if len(b.held) > 0 {
		due := revokedPoll
		for _, h := range b.held {
			due = min(due, time.Until(h.due))
		}
		wait, cancel = context.WithTimeout(ctx, max(due, time.Millisecond))
	}
	defer cancel()
	if b.down() {
		b.drop(ctx)
		<-wait.Done()
		_, err := b.s.join() // the source may have ended meanwhile
		return nil, err
	}
	works, err := b.taken(ctx)
	if len(works) == 0 && err == nil {
		var ds []driver.Delivery
		ds, err = b.s.Next(wait, MaxBatch)
		works = newWorks(ds)
	}
	switch {
	case err == nil:
		b.pause = 0
		return works, nil
	case errors.Is(err, driver.ErrClosed):
		return nil, err
	case wait.Err() != nil:
		return nil, nil
	}
	b.observe(ctx, consume.Event{Kind: consume.EventReceiveFailed, Err: err})
	b.pause = min(max(2*b.pause, firstPause), longestPause)
	wait, cancel = context.WithTimeout(ctx, b.pause)
	defer cancel()
	<-wait.Done()
	return nil, nil
}

// down reports whether no message may be taken: the ledger does not answer, and
// a message waits whose next try will show when it does. Other messages may
// wait for much longer.
func (b *batches) down() bool {
	if !b.outage {
		return false
	}
	for _, h := range b.held {
		if slices.ContainsFunc(h.works, func(w *work) bool { return !w.decided && isOutage(&w.disp) }) {
			return true
		}
	}
	return false
}

// gather makes a batch of new and due messages, in the order of the offsets.
// Messages after a held one of their order key join that one.
func (b *batches) gather(ctx context.Context, fresh []*work) (batch []*work) {
	now := time.Now()
	left := func(w *work) bool { return b.left(ctx, w) }
	for key, h := range b.held {
		if h.works = slices.DeleteFunc(h.works, left); len(h.works) == 0 {
			delete(b.held, key)
		}
	}
	batch = make([]*work, 0, len(fresh))
	for _, w := range fresh {
		w.orderKey = b.l.OrderKey(w.it)
		if h := b.held[w.orderKey]; h != nil && w.orderKey != "" {
			h.works = append(h.works, w)
		} else {
			batch = append(batch, w)
		}
	}
	for key, h := range b.held {
		if !now.Before(h.due) {
			batch = append(batch, h.works...)
			delete(b.held, key)
		}
	}
	batch = slices.DeleteFunc(batch, left)
	slices.SortFunc(batch, compareWorks)
	return batch
}

// left gives up a message whose partition was taken away, and reports whether
// it did.
func (b *batches) left(ctx context.Context, w *work) bool {
	select {
	case <-w.Revoked():
		_ = w.Nak(ctx, 0) // the partition is revoked: an error has no meaning
		b.observe(ctx, consume.Event{Kind: consume.EventReturned, Message: w.m, Disposition: w.disp})
		return true
	default:
		return false
	}
}

// giveUp leaves the held messages to the next member.
func (b *batches) giveUp(ctx context.Context) {
	b.drop(ctx)
	for _, h := range b.held {
		for _, w := range h.works {
			_ = w.Nak(ctx, 0)
			b.observe(ctx, consume.Event{Kind: consume.EventReturned, Message: w.m, Disposition: w.disp})
		}
	}
}

// policy is the part of the options that decides about messages.
func (b *batches) policy() driver.Policy {
	return driver.Policy{Backoff: b.opt.Backoff, AckFailures: b.opt.AckFailures}
}

// observe reports an event. A panic of Observe is logged and has no effect, as in a Consumer.
func (b *batches) observe(ctx context.Context, e consume.Event) {
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "semelkafka: Observe panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	report := b.opt.Observe
	if report == nil {
		report = consume.LogEvents(nil)
	}
	report(ctx, e)
}
