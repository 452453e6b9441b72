package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// While one of three masters is down, errors say that only its keys are concerned,
// and the store answers a Ping. Without any master it does not.
func TestCluster_MasterDown_ConcernsItsKeysOnly(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, false, "--cluster-require-full-coverage", "no")
	s := openCluster(t, all, nil)
	if err := store.Ping(t.Context(), s); err != nil {
		t.Fatalf("all masters are up: %v", err)
	}
	dead := all.Masters[0].Addr()
	all.Masters[0].Kill()
	failed, served := 0, 0
	for i := 0; failed == 0 || served == 0; i++ {
		k := testKey(itoa(i))
		record, _ := s.name(k.Digest())
		node, err := s.cluster.MasterForKey(t.Context(), record)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		f, err := s.Claim(ctx, proposal(itoa(i)))
		cancel()
		switch isDead := node.Options().Addr == dead; {
		case isDead:
			if failed++; err == nil || store.Affects(err) != store.ExtentPart {
				t.Errorf("a key of the dead master: extent %d of %v, found %+v", store.Affects(err), err, f)
			}
		default:
			if served++; err != nil {
				t.Errorf("a key of another master: %v", err)
			}
		}
	}
	if err := store.Ping(t.Context(), s); err != nil {
		t.Errorf("two of three masters are up: %v", err)
	}
	all.Masters[1].Kill()
	all.Masters[2].Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := store.Ping(ctx, s); err == nil {
		t.Error("no master is up, and Ping succeeds")
	}
}
