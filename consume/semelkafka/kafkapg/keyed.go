package kafkapg

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
)

// ServeKeyed handles messages that have idempotency keys, until ctx ends. See
// semelkafka.Source.ServeBatches for o, of which MaxAttempts counts too. Make a
// with the Retention of consumers, consume.DefaultRetention or longer.
func ServeKeyed(ctx context.Context, s *semelkafka.Source, a *pgstore.Atomic, call consume.CallFunc, h Handler, o *consume.Options) error {
	if s == nil || a == nil || call == nil || h == nil {
		return errors.New("kafkapg: ServeKeyed: the source, the Atomic, the CallFunc and the handler must not be nil")
	}
	if err := call.Check(); err != nil {
		return fmt.Errorf("kafkapg: ServeKeyed: the CallFunc: %w", err)
	}
	l := &keyed{a: a, prefetcher: a.Prefetcher(), call: call, h: h, most: attempts(o), undone: map[string]int{}}
	defer l.cares.end(ctx)
	return s.ServeBatches(ctx, l, o)
}

// keyed is a semelkafka.Ledger of records.
type keyed struct {
	a          *pgstore.Atomic
	prefetcher *pgstore.Prefetcher
	call       consume.CallFunc
	h          Handler
	most       int
	// undone counts the transactions of a message alone that did not commit:
	// of that there is no record.
	undone map[string]int
	cares  cares

	mu    sync.Mutex // guards what follows
	rooms []room     // of batches that have ended, to be used again
}

// Retention tells ServeBatches how long records are kept.
func (l *keyed) Retention() time.Duration { return l.a.Retention() }

// Own implements semelkafka.Ledger: Kafka says where to begin, for what is done
// behind it is found by its key.
func (l *keyed) Own(_ context.Context, of semelkafka.Place, start int64) (int64, error) {
	l.cares.own(l.a.Store(), of, start)
	return start, nil
}

// Lane implements semelkafka.Ledger.
func (l *keyed) Lane(it semelkafka.Item) string { return it.OrderKey }

// Pass implements semelkafka.Ledger: the record has been written.
func (l *keyed) Pass(context.Context, semelkafka.Item) error { return nil }
