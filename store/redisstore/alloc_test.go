//go:build !race

package redisstore

import (
	"errors"
	"testing"

	"github.com/semel-go/semel/store"
)

// Hundreds of goroutines make calls at once, so each allocation of a call costs
// time of the garbage collector. (Under the race detector a pool drops items.)
func TestCall_Made_AllocatesOnlyItsRedisKeys(t *testing.T) {
	s := openNew(t, nil)
	r := complete(t, s, "k", "x")
	var err error
	got := testing.AllocsPerRun(200, func() {
		c, e := s.settleCall(&store.Lease{Key: r.Key, Owner: r.Owner, Fence: r.Fence}, &store.Settlement{State: store.Completed, Outcome: r.Outcome})
		c.answered, err = true, errors.Join(err, e)
		c.free()
	})
	if err != nil || got > 1 { // the record's name
		t.Errorf("a call takes %v allocations, error %v; want 1", got, err)
	}
}
