package kafkatest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/consume/semelkafka/kafkapg"
)

// naked is the form without deduplication: a transaction for each batch, and
// then the offset. It is the control, and the baseline of the comparison.
const naked form = "naked"

// nakedLedger implements semelkafka.Ledger.
type nakedLedger struct {
	b *bank
	h kafkapg.Handler
}

func (l *nakedLedger) Own(_ context.Context, _ semelkafka.GroupPartition, start int64) (int64, semelkafka.LastMessage, error) {
	return start, semelkafka.LastMessage{}, nil
}

func (l *nakedLedger) OrderKey(it semelkafka.Item) string { return it.OrderKey }

func (l *nakedLedger) Pass(context.Context, semelkafka.Item) error { return nil }

func (l *nakedLedger) Handle(ctx context.Context, batch []semelkafka.Item) []driver.Result {
	ends, ms := make([]driver.Result, len(batch)), make([]*consume.Message, len(batch))
	for i := range batch {
		ms[i] = batch[i].Message
	}
	if err := pgx.BeginFunc(ctx, l.b.pool, func(tx pgx.Tx) error { return l.h(ctx, tx, ms) }); err != nil {
		for i := range ends {
			ends[i].Err = &semel.Error{Reason: semel.ErrUnavailable, Cause: err}
		}
	}
	return ends
}
