package shardstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/shardstore"
)

// timerless is a store whose timers cannot be had.
type timerless struct{ *memstore.Store }

func (timerless) DueTimers(context.Context, string, time.Duration, int) ([]store.Timer, time.Time, error) {
	return nil, time.Time{}, errDown
}

// A shard that is down delays its own sagas only.
func TestDueTimers_ShardDown_OthersAreFound(t *testing.T) {
	s := newStore(t, shardstore.Shard{Name: "a", Store: timerless{memstore.New(nil)}}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
	timers, ok := store.As[store.Timers](s)
	if !ok {
		t.Fatal("the store keeps no timers")
	}
	up := 0
	for i := range 60 {
		k := key(fmt.Sprint(i))
		if set, err := timers.SetTimer(t.Context(), k, store.Owner{}, store.Owner{1}, 0); err != nil || !set {
			t.Fatalf("set %v, error %v", set, err)
		}
		if s.On(k) == "b" {
			up++
		}
	}
	due, now, err := timers.DueTimers(t.Context(), key("").Operation, time.Hour, 100)
	if len(due) != up || up == 0 || now.IsZero() || !errors.Is(err, errDown) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("%d timers at %v, error %v; want %d and the error of a", len(due), now, err, up)
	}
}

// A clock that cannot be read may be the fastest.
func TestLatestClock_EachShard_FastestOrError(t *testing.T) {
	type several interface {
		LatestClock(ctx context.Context) (time.Time, error)
	}
	w := newWorld(t, 3, time.Hour, nil)
	clocks, ok := store.As[several](w)
	if !ok {
		t.Fatal("the store has no LatestClock")
	}
	if now, err := clocks.LatestClock(t.Context()); err != nil || !now.Equal(store.Time(store.Micros(w.now(2)))) {
		t.Errorf("%v, error %v; want %v", now, err, w.now(2))
	}
	s := newStore(t, shardstore.Shard{Name: "a", Store: timerless{memstore.New(nil)}}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
	clocks, _ = store.As[several](s)
	if now, err := clocks.LatestClock(t.Context()); !errors.Is(err, errDown) || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("%v, error %v; want the error of a", now, err)
	}
}

func TestUnwrap_OneShardKeepsNoTimers_NoneAreKept(t *testing.T) {
	s := newStore(t, shardstore.Shard{Name: "a", Store: bare{memstore.New(nil)}}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
	if _, ok := store.As[store.Timers](s); ok {
		t.Error("the store keeps timers")
	}
}
