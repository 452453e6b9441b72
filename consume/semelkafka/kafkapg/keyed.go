package kafkapg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	semeldriver "github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store/pgstore"
)

// ServeKeyed handles messages until ctx ends, and keeps a record for the
// idempotency key of each message. call finds the key; see consume.Keyed.
//
// Make a with a Retention of consume.DefaultRetention or longer. For o see
// semelkafka.Source.ServeBatches; o.MaxAttempts and o.Reopen apply too. Call
// Source.Close after ServeKeyed has returned.
func ServeKeyed(ctx context.Context, s *semelkafka.Source, a *pgstore.Atomic, call consume.CallFunc, h Handler, o *consume.Options) error {
	if s == nil || a == nil || call == nil || h == nil {
		return errors.New("kafkapg: ServeKeyed: the source, the Atomic, the CallFunc and the handler must not be nil")
	}
	if err := call.Check(); err != nil {
		return fmt.Errorf("kafkapg: ServeKeyed: the CallFunc: %w", err)
	}
	l := newKeyedLedger(a, call, h, o)
	defer l.markers.end(ctx)
	return s.ServeBatches(ctx, l, o)
}

// keyedLedger is the semelkafka.Ledger of ServeKeyed.
type keyedLedger struct {
	atomic      *pgstore.Atomic
	prefetcher  *pgstore.Prefetcher
	call        consume.CallFunc
	handler     Handler
	maxAttempts int
	reopen      *semel.Guard  // consume.Options.Reopen
	policy      driver.Policy // without Backoff
	// uncommitted counts, by consume.Origin.ID, the transactions of a single
	// message that did not commit, because such a transaction leaves no record.
	// The counts of a partition that has gone to another member stay.
	uncommitted map[string]int
	markers     crashMarkers
}

// maxUncommitted is the number of messages after which uncommitted counts all of them from
// zero again, so that it does not grow without a bound.
const maxUncommitted = 1 << 16

func newKeyedLedger(a *pgstore.Atomic, call consume.CallFunc, h Handler, o *consume.Options) *keyedLedger {
	l := &keyedLedger{
		atomic: a, prefetcher: a.Prefetcher(), call: call, handler: h, maxAttempts: maxAttemptsOf(o), uncommitted: map[string]int{},
	}
	if o != nil {
		l.reopen, l.policy.AckFailures = o.Reopen, o.AckFailures
	}
	return l
}

// Retention tells ServeBatches how long records are kept.
func (l *keyedLedger) Retention() time.Duration { return l.atomic.Retention() }

// Own implements semelkafka.Ledger. It reads from Kafka's offset, because messages
// after that offset that are done are found by their keys.
func (l *keyedLedger) Own(_ context.Context, partition semelkafka.GroupPartition, start int64) (int64, semelkafka.LastMessage, error) {
	l.markers.assign(l.atomic.Store(), partition, start)
	return start, semelkafka.LastMessage{}, nil
}

// OrderKey implements semelkafka.Ledger.
func (l *keyedLedger) OrderKey(it semelkafka.Item) string { return it.OrderKey }

// Pass implements semelkafka.Ledger. It has nothing to do, because the record of
// the message is written already.
func (l *keyedLedger) Pass(context.Context, semelkafka.Item) error { return nil }

// identify returns the call of a message.
func (l *keyedLedger) identify(m *consume.Message) (c semel.Call, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &semel.Error{Reason: semel.ErrInvalid, Cause: fmt.Errorf("the CallFunc panicked: %v", v)}
		}
	}()
	c, err = l.call(m)
	err = semeldriver.ReadableError(err)
	if err != nil && !errors.Is(err, consume.ErrNoKey) && !errors.Is(err, consume.ErrRejected) {
		err = &semel.Error{Reason: semel.ErrInvalid, Operation: c.Operation, Cause: err}
	}
	if err == nil {
		m.Key, m.Record = c.Key, l.atomic.StoreKey(c)
	}
	return c, err
}
