package kafkatest

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
)

// besideLedger prepares a batch and handles one before it at the same time, if
// it is asked to.
type besideLedger struct {
	handling, preparing atomic.Bool
	both                atomic.Bool   // it was
	end                 func()        // of the batch that it was with
	left                time.Duration // that it then takes to prepare
}

// meets waits for the other for a while.
func meets(other *atomic.Bool) bool {
	for range 50 {
		if other.Load() {
			return true
		}
		<-time.After(2 * time.Millisecond)
	}
	return false
}

func (*besideLedger) Own(_ context.Context, _ semelkafka.GroupPartition, start int64) (int64, semelkafka.LastMessage, error) {
	return start, semelkafka.LastMessage{}, nil
}
func (*besideLedger) OrderKey(semelkafka.Item) string             { return "" }
func (*besideLedger) Pass(context.Context, semelkafka.Item) error { return nil }
func (*besideLedger) Handle(context.Context, []semelkafka.Item) []driver.Result {
	panic("not prepared")
}

func (l *besideLedger) Prepare(_ context.Context, batch []semelkafka.Item) semelkafka.Prepared {
	l.preparing.Store(true)
	if meets(&l.handling) {
		<-time.After(l.left)
	}
	l.preparing.Store(false)
	return besideBatch{l, len(batch)}
}

type besideBatch struct {
	l *besideLedger
	n int
}

func (b besideBatch) Handle(context.Context) []driver.Result {
	b.l.handling.Store(true)
	defer b.l.handling.Store(false)
	if meets(&b.l.preparing) {
		b.l.both.Store(true)
		b.l.end()
	}
	return make([]driver.Result, b.n)
}

func (besideBatch) Drop() {}

// serveBeside has the ledger handle the messages of some full batches.
func serveBeside(t *testing.T, l *besideLedger) (ended chan struct{}, stop func()) {
	t.Helper()
	_, seed := fake(t)
	br := open(t, seed)
	br.to(t, 0, numbered("m", 10*semelkafka.MaxBatch, "")...)
	s := br.source(t, func(o *semelkafka.Options) { o.Outstanding = 4 * semelkafka.MaxBatch })
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.ServeBatches(ctx, l, &consume.Options{AllowShortRetention: true}); err != nil {
			t.Error(err)
		}
	}()
	return ended, cancel
}

func TestServeBatches_WhileOneIsHandled_PreparesTheNext(t *testing.T) {
	t.Parallel()
	l := &besideLedger{end: func() {}, left: time.Millisecond}
	ended, stop := serveBeside(t, l)
	until(t, "both at once", l.both.Load)
	stop()
	wait(t, "ended", ended)
}

// A handler that calls runtime.Goexit ends the goroutine of ServeBatches.
func TestServeBatches_HandlerCallsGoexit_EndsThePreparation(t *testing.T) {
	t.Parallel()
	l := &besideLedger{end: runtime.Goexit, left: 50 * time.Millisecond}
	ended, stop := serveBeside(t, l)
	defer stop()
	if wait(t, "ended", ended); l.preparing.Load() {
		t.Error("ServeBatches ended, and a batch is being prepared")
	}
}
