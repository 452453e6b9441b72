package kafkatest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
)

// stuckLedger is one whose first message never ends, and that prepares batches.
type stuckLedger struct {
	looks chan struct{} // has one for each time that the first was given
}

func (stuckLedger) Own(_ context.Context, _ semelkafka.GroupPartition, start int64) (int64, semelkafka.LastMessage, error) {
	return start, semelkafka.LastMessage{}, nil
}

func (stuckLedger) OrderKey(it semelkafka.Item) string { return fmt.Sprint(it.Origin.Offset) }

func (l stuckLedger) Handle(_ context.Context, batch []semelkafka.Item) []driver.Result {
	ends := make([]driver.Result, len(batch))
	for i, it := range batch {
		if it.Origin.Offset == 0 {
			ends[i].Err = &semel.Error{Reason: semel.ErrInProgress, RetryAfter: time.Millisecond}
			l.looks <- struct{}{}
		}
	}
	return ends
}

func (stuckLedger) Pass(context.Context, semelkafka.Item) error { return nil }

// stuckBatch is a batch of it.
type stuckBatch struct {
	l     stuckLedger
	batch []semelkafka.Item
}

func (l stuckLedger) Prepare(_ context.Context, batch []semelkafka.Item) semelkafka.Prepared {
	return stuckBatch{l, batch}
}

func (b stuckBatch) Handle(ctx context.Context) []driver.Result { return b.l.Handle(ctx, b.batch) }

func (stuckBatch) Drop() {}

// A message waits, and as many are done after it as Outstanding allows. The
// rest of the topic stays with the brokers, however often the source looks
// ahead.
func TestServeBatches_StuckMessage_BoundsTheFetch(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	br := open(t, seed)
	br.name += ".single"
	if r, err := br.adm.CreateTopic(t.Context(), 1, 1, nil, br.name); errors.Join(err, r.Err) != nil {
		t.Fatal(errors.Join(err, r.Err))
	}
	for range 40 {
		ms := numbered("m", semelkafka.MaxBatch/2, "")
		for i := range ms { // one fetch is not to bring them all
			ms[i].Body = make([]byte, 1<<10)
			_, _ = rand.Read(ms[i].Body)
		}
		br.to(t, 0, ms...)
	}
	l := stuckLedger{looks: make(chan struct{})}
	s := br.source(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.ServeBatches(ctx, l, &consume.Options{AllowShortRetention: true}) }()
	most := 0
	for range 60 {
		wait(t, "looked at", l.looks)
		for _, p := range s.Stats().Partitions {
			most = max(most, p.Queued)
		}
	}
	cancel()
	for ended := false; !ended; {
		select {
		case <-l.looks:
		case err := <-done:
			if ended = true; err != nil {
				t.Error(err)
			}
		}
	}
	if most > 4*semelkafka.MaxBatch {
		t.Errorf("of one partition %d messages are fetched and not handled", most)
	}
}
