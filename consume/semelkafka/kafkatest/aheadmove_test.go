package kafkatest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// Partitions go to another member and come back while batches of theirs are
// looked for ahead. Nothing of them is lost or done twice, and nothing
// overtakes.
func TestServeBatches_PartitionsMoveDuringLookAhead_LosesNoMessage(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	br, b := open(t, seed), openBank(t)
	const orderKeys = 3 * partitions
	var sent [orderKeys]int
	more := func(n int) {
		for p := range int32(partitions) {
			var ms []consume.Message
			for i := range n * orderKeys / partitions {
				orderKey := int(p) + i%(orderKeys/partitions)*partitions
				ms = append(ms, msg(fmt.Sprintf("%02d/%06d", orderKey, sent[orderKey]), fmt.Sprint("lane ", orderKey)))
				if sent[orderKey]++; i%10 == 0 {
					ms = append(ms, ms[max(0, len(ms)-1-[]int{0, 30, 1000}[i/10%3])]) // in this batch, or in one before
				}
			}
			br.to(t, p, ms...)
		}
	}
	slow := func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		if _, err := tx.Exec(ctx, "SELECT pg_sleep(0.02)"); err != nil {
			return err
		}
		return b.write(ctx, tx, ms)
	}
	var returned, full atomic.Int64 // messages taken ahead, because no handler fails here
	observe := &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		switch e.Kind {
		case consume.EventReturned:
			returned.Add(1)
		case consume.EventDecided:
			if e.Disposition.Action != driver.Ack && e.Disposition.Action != driver.Hold {
				t.Errorf("%s: %v, %v", e.Message.Key, e.Disposition.Action, e.Disposition.Err)
			}
		}
	}}
	count := func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		if len(ms) > 900 {
			full.Add(1)
		}
		return slow(ctx, tx, ms)
	}
	first := br.source(t, nil)
	b.member(t, keyed, first, count, observe)
	const moves = 4
	for move := 0; move < moves || returned.Load() == 0 && move < 10*moves; move++ {
		more(1000)
		done := full.Load()
		until(t, "full batches", func() bool { return full.Load() > done+1 })
		second := br.source(t, nil)
		stop := b.member(t, keyed, second, slow, observe)
		until(t, "a partition with the second", func() bool { return len(second.Stats().Partitions) > 0 })
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}
	br.settled(t)
	all, effects := 0, b.effects(t)
	for _, n := range sent {
		all += n
	}
	wantKeysInOrder(t, effects)
	if len(effects) != all || returned.Load() == 0 {
		t.Errorf("%d effects of %d; %d were given back", len(effects), all, returned.Load())
	}
	t.Logf("%d messages, %d full batches, %d given back", all, full.Load(), returned.Load())
}
