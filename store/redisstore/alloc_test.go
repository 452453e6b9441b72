//go:build !race

package redisstore

import (
	"errors"
	"testing"

	"github.com/semel-go/semel/store"
)

// What an operation allocates is what the collector has to look after, of
// hundreds of goroutines at once. (Under the race detector a pool forgets.)
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
