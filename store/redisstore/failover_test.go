package redisstore

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// openFailover opens a store through a Sentinel.
func openFailover(t *testing.T, f *redistest.Failover, o *Options) *Store {
	t.Helper()
	c, err := newClient(f.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return openOn(t, c, o)
}

// grants counts the claims of a key, by handlers that do not know of each
// other, which are granted before the replication is cut and the master dies,
// and after.
func grants(t *testing.T, o *Options) (granted, refused int) {
	f := redistest.StartFailover(t, redistest.Fast...)
	s := openFailover(t, f, o)
	complete(t, openFailover(t, f, nil), "before", "x")
	if err := f.Cut(); err != nil {
		t.Fatal(err)
	}
	first, err := s.Claim(t.Context(), proposal("k"))
	switch {
	case errors.Is(err, ErrNotAcknowledged):
		refused++
	case err != nil || !first.Won:
		t.Fatalf("won %v, error %v", first.Won, err)
	default:
		granted++
	}
	f.Master.Kill()
	if err := f.Promoted(); err != nil {
		t.Fatal(err)
	}
	after := openFailover(t, f, &Options{})
	p := proposal("k") // the same again, if its first sending had no answer
	waitFor(t, "a claim is answered after the fail-over", func() bool {
		second, err := after.Claim(t.Context(), p)
		if err == nil && second.Won {
			granted++
		}
		return err == nil
	})
	return granted, refused
}

// The harness must be able to see what is lost.
func TestFailOver_WithoutReplicas_GrantsTwice(t *testing.T) {
	t.Parallel()
	granted, _ := grants(t, &Options{})
	figure(t, "replication cut, and a fail-over, without Options.Replicas: a claim is granted twice", true, 1, int64(granted-1), "")
	if granted != 2 {
		t.Errorf("granted %d times: the harness is blind", granted)
	}
}

func TestFailOver_WithReplicas_RefusesLostClaim(t *testing.T) {
	t.Parallel()
	granted, refused := grants(t, &Options{Replicas: 1, AckTimeout: 200 * time.Millisecond})
	figure(t, "replication cut, and a fail-over, with Options.Replicas 1: no claim is granted twice", false, 1, int64(granted-1), fmt.Sprintf("%d refused", refused))
	if granted != 1 || refused != 1 {
		t.Errorf("granted %d times, refused %d times; want each once", granted, refused)
	}
}

// Work continues through a fail-over with the same handle. Each key has one owner
// or one outcome, so that all answers for it agree. Changes that the replica
// acknowledged are not lost.
func TestFailOver_CallsRunning_EachEndsOnce(t *testing.T) {
	t.Parallel()
	f := redistest.StartFailover(t, redistest.Fast...)
	s := openFailover(t, f, &Options{Replicas: 1, AckTimeout: 10 * time.Second})
	l := newLedger()
	var stop atomic.Bool
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() { l.work(t, s, fmt.Sprint(g), &stop) })
	}
	l.grow(t, 200)
	f.Master.Kill()
	if err := f.Promoted(); err != nil {
		t.Error(err)
	}
	// There is one server now, and nobody who could acknowledge.
	stop.Store(true)
	alone := openFailover(t, f, &Options{})
	waitFor(t, "the new master answers", func() bool {
		_, err := alone.Get(t.Context(), testKey("x"))
		return errors.Is(err, store.ErrNotFound)
	})
	all.Wait()
	lost := l.lost(t, alone)
	figure(t, "a claim or outcome that the replica acknowledged survives a fail-over", false, l.size(), lost, fmt.Sprintf("%d requests sent again", l.resent.Load()))
	if lost != 0 {
		t.Errorf("%d of %d were lost", lost, l.size())
	}
	after := newLedger()
	stop.Store(false)
	for g := range 8 {
		all.Go(func() { after.work(t, alone, fmt.Sprint("after", g), &stop) })
	}
	after.grow(t, 200)
	stop.Store(true)
	all.Wait()
	if lost := after.lost(t, alone); lost != 0 {
		t.Errorf("%d of %d were lost after the fail-over", lost, after.size())
	}
}
