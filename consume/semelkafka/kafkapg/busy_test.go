package kafkapg

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store/pgstore"
)

// A message that was alone in conflict with other transactions waits, and no
// attempt counts. If it is in conflict each time, it is the cause itself: it makes
// attempts, and ends. The count begins again with another message.
func TestOffsets_MessageAlwaysBusy_EndsAfterMaxAttempts(t *testing.T) {
	p := newShop(t)
	l, busy := p.offsets(2), true
	l.handler = func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		if busy {
			return pgstore.ErrBusy
		}
		return p.write(ctx, tx, ms)
	}
	want := func(offset int64, reason driver.Reason, attempt int) {
		t.Helper()
		if d := driver.Decide(l.Handle(t.Context(), items(offset, offset+1))[0], driver.Policy{}); d.Reason != reason || d.Attempt != attempt {
			t.Fatalf("offset %d: %v, attempt %d, %v; want %v, attempt %d", offset, d.Reason, d.Attempt, d.Err, reason, attempt)
		}
	}
	for range maxBusy {
		want(0, driver.ReasonInProgress, 0)
	}
	busy = false
	want(0, driver.ReasonDone, 0)
	busy = true
	for range maxBusy {
		want(1, driver.ReasonInProgress, 0)
	}
	want(1, driver.ReasonError, 1)
	want(1, driver.ReasonExhausted, 2)
}
