package pgstore

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/store/coalesce"
)

// A settlement whose row is locked for longer than its batch waits is not busy
// yet: it waits outside, whether it went by itself or came out of a batch.
func TestSettle_RowLocked_WaitsOutsideBatch(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]bool{"by itself": false, "out of a batch": true} {
		t.Run(name, func(t *testing.T) {
			s := openNew(t, &Options{LockTimeout: 10 * time.Minute})
			if out {
				s.settles = coalesce.New(func(_ context.Context, batch []*settleItem) {
					for _, it := range batch {
						it.Err = errSendAlone
					}
				}, nil)
			}
			r := claim(t, s, "k")
			release := holdRows(t, s, "k")
			got := make(chan error, 1)
			go func() { got <- s.Settle(t.Context(), r.Lease(), completion("x")) }()
			waitFor(t, "it waits, or has ended", func() bool { return len(s.waitSlots) == 1 || len(got) == 1 })
			release()
			if err := <-got; err != nil {
				t.Errorf("once the row is free: %v", err)
			}
		})
	}
}
