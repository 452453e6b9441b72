package shardstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/shardstore"
)

// damaged is a store with one more timer, which cannot be read.
type damaged struct{ *memstore.Store }

func (d damaged) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	due, now, err := d.Store.DueTimers(ctx, operation, within, limit)
	return due, now, errors.Join(err, store.ErrCorrupt)
}

// A shard that does not answer is no unreadable timer: its timers are missing.
func TestDueTimers_ShardDownBesideUnreadable_IsOutage(t *testing.T) {
	s := newStore(t, shardstore.Shard{Name: "a", Store: timerless{memstore.New(nil)}}, shardstore.Shard{Name: "b", Store: damaged{memstore.New(nil)}})
	timers, _ := store.As[store.Timers](s)
	if _, _, err := timers.DueTimers(t.Context(), key("").Operation, time.Hour, 100); errors.Is(err, store.ErrCorrupt) || !errors.Is(err, errDown) {
		t.Errorf("error %v; want that of a, which is no ErrCorrupt", err)
	}
	if stats, err := saga.ReadStats(t.Context(), s, "trip"); !errors.Is(err, semel.ErrUnavailable) {
		t.Errorf("stats %+v, error %v; want ErrUnavailable, because a did not answer", stats, err)
	}
}

// A timer that cannot be read hides the clock of no shard.
func TestDueTimers_EachShardHasUnreadable_TimeIsKnown(t *testing.T) {
	s := newStore(t, shardstore.Shard{Name: "a", Store: damaged{memstore.New(nil)}}, shardstore.Shard{Name: "b", Store: damaged{memstore.New(nil)}})
	timers, _ := store.As[store.Timers](s)
	for i := range 4 {
		if _, err := timers.SetTimer(t.Context(), saga.Key("trip", "ann", fmt.Sprint(i)), store.Owner{}, store.Owner{1}, -time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	stats, err := saga.ReadStats(t.Context(), s, "trip")
	if stats.Due != 4 || stats.OldestDue < time.Minute || !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("stats %+v, error %v; want 4 due for a minute and ErrCorrupt", stats, err)
	}
}
