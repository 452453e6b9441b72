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

func TestUnwrap_OneShardKeepsNoTimers_NoneAreKept(t *testing.T) {
	s := newStore(t, shardstore.Shard{Name: "a", Store: bare{memstore.New(nil)}}, shardstore.Shard{Name: "b", Store: memstore.New(nil)})
	if _, ok := store.As[store.Timers](s); ok {
		t.Error("the store keeps timers")
	}
}
