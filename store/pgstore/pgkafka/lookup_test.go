package pgkafka

import (
	"testing"
	"time"

	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// A lookup does not wait if another owner has the partition.
func TestWatermark_FencedOwnerCommit_NotWaitedFor(t *testing.T) {
	p := newShop(t, nil)
	w := own(t, p.st, 0)
	own(t, p.st, 0)
	start := time.Now()
	if is, _ := w.hasMoved(t.Context(), 0); is {
		t.Error("it came")
	}
	if took := time.Since(start); took > w.db.StoreTimeout/2 {
		t.Errorf("it took %v", took)
	}
}

// Whether a commit that got no answer has moved the watermark is known when it
// has ended, and not before.
func TestWatermark_CommitInFlight_WaitedFor(t *testing.T) {
	p := newShop(t, nil)
	w := own(t, p.st, 0)
	tx := p.begin(t)
	if err := w.Move(t.Context(), tx, Span{First: 0, Next: 3}); err != nil {
		t.Fatal(err)
	}
	came := make(chan bool, 1)
	go func() {
		is, known := w.hasMoved(t.Context(), 3)
		came <- is && known
	}()
	waitFor(t, "it waits, or does not", func() bool {
		return len(came) > 0 || p.ask(t, "SELECT count(*)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%semel_watermark%'") > 0
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !<-came {
		t.Error("what was committed has not come")
	}
}

// A process that freezes while it looks whether its commit has moved the watermark holds
// up the next owner for a time only.
func TestWatermark_LookupFreezes_LockReleased(t *testing.T) {
	t.Parallel()
	c, url := cuttest.New(t, pgtest.URL(t), false)
	c.Freeze = true
	p := newShop(t, &pgstore.Options{MaxIdleTx: time.Second, LockTimeout: 4 * time.Second})
	frozen := own(t, p.st, 0)
	frozen.db = through(t, frozen.db, url)
	frozen.db.Own = frozen.db.App
	c.At("SELECT topic_id")
	go frozen.hasMoved(t.Context(), 3)
	waitFor(t, "it has locked the row, and is frozen", func() bool { return c.Cuts.Load() == 1 })
	if next, err := Own(t.Context(), p.st, orders, 0); err != nil || next.Next() != 0 {
		t.Errorf("the next owner: %+v, %v", next, err)
	}
}
