package semelkafka

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// mute is a ledger whose Pass waits as long as it may, or until its own limit, for an
// answer, but for the messages of one partition.
type mute struct {
	scripted
	limit   time.Duration
	answers int32
	asked   map[int32]int // by partition
}

func (l *mute) Pass(ctx context.Context, it Item) error {
	if l.asked[it.Origin.Partition]++; it.Origin.Partition == l.answers {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	<-ctx.Done()
	return ctx.Err()
}

// The topic of the letters is gone, or the ledger gives no answer within a limit of its
// own, so that each letter times out. A turn waits for one of them only, because all
// partitions, and the end of the drain, wait for the turn.
func TestSettleAll_NoAnswer_WaitsOnce(t *testing.T) {
	for _, limit := range []time.Duration{time.Hour, settleTimeout / 2} {
		synctest.Test(t, func(t *testing.T) {
			failed := driver.Result{Err: semel.Final(errors.New("no")), FromHandler: true, Attempt: 1}
			l := &mute{limit: limit, answers: 3, asked: map[int32]int{}}
			l.ends = map[string]driver.Result{"0/0": failed, "1/0": failed, "2/0": failed, "3/0": failed}
			b := looping(t, l, consume.Options{AckFailures: true}, 1, 1, 1, 1)
			for range 8 {
				began := time.Now()
				b.turn(t)
				if took := time.Since(began); took > min(limit, settleTimeout) {
					t.Errorf("a turn has taken %v, with a limit of %v", took, limit)
				}
				time.Sleep(firstSettle) // of the bubble's time
			}
			if l.asked[3] != 1 || min(l.asked[0], l.asked[1], l.asked[2]) < 1 || len(b.held) != 3 {
				t.Errorf("the ledger was asked %v; %d order keys wait", l.asked, len(b.held))
			}
		})
	}
}
