package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// newCallOf is a call with a body.
func newCallOf(op string, tenant, key string, body semel.Payload) semel.Call {
	return semel.Call{Operation: op, Tenant: tenant, Key: key, Payload: body}
}

// Of a key that is in a batch more than once, the first is recorded ahead, and the
// others are compared with it.
func TestPrefetch_KeyTwice_SecondComparedWithFirst(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	w, one, other := newWorker(p), semel.Bytes([]byte("one")), semel.Bytes([]byte("other"))
	calls := []semel.Call{newCallOf("pay", "ann", "k", one), newCallOf("pay", "ann", "l", one), newCallOf("pay", "ann", "k", one), newCallOf("pay", "ann", "k", other)}
	n := p.a.Prefetcher().Prefetch(t.Context(), calls)
	if !n.waitPrefetched() || n.batch.prefetch.written != 2 {
		t.Fatal("nothing is recorded ahead")
	}
	for i, first := range []int{2: 0, 3: 0} {
		if v := &n.batch.calls[i]; i > 1 && v.prefetched.firstCall != &n.batch.calls[first] || i < 2 && v.prefetched.firstCall != nil {
			t.Errorf("call %d does not know which is the first with its key", i)
		}
	}
	ends := n.Run(t.Context(), w.rows(calls))
	wantDone(t, ends[:3], false, false, true)
	if !errors.Is(ends[3].Err, semel.ErrMismatch) || w.runs["k"] != 1 {
		t.Errorf("another payload: %v; %d runs", ends[3].Err, w.runs["k"])
	}
	p.want(t, "k", "l")
}

// Calls that differ in more columns than a prefetch sends for each are recorded
// correctly.
func TestPrefetch_CallsDiffer_RecordedCorrectly(t *testing.T) {
	t.Parallel()
	body := semel.Bytes([]byte("body"))
	for name, other := range map[string]semel.Call{
		"tenants":    newCallOf("pay", "bob", "l", body),
		"operations": newCallOf("refund", "ann", "l", body),
		"payloads":   newCallOf("pay", "ann", "l", semel.JSON(1)),
	} {
		p := newShop(t, openNew(t, nil), nil)
		w, calls := newWorker(p), []semel.Call{newCallOf("pay", "ann", "k", body), other}
		wantDone(t, p.a.Prefetcher().Prefetch(t.Context(), calls).Run(t.Context(), w.rows(calls)), false, false)
		t.Log(name)
		wantDone(t, p.a.RunBatch(t.Context(), calls, w.rows(calls)), true, true)
		p.want(t, "k", "l")
	}
}

// The bearer of a token only looks: where the reservation is gone there is nothing
// to be recorded ahead.
func TestPrefetch_ReservationGone_DoesNotRun(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	g, err := semel.New(p.s, nil)
	if err != nil {
		t.Fatal(err)
	}
	ticket, err := g.Reserve(t.Context(), call("reserved"))
	if err != nil {
		t.Fatal(err)
	}
	redeemed, err := g.Redeem(ticket.Token)
	if err != nil {
		t.Fatal(err)
	}
	mustExec(t, p.s.appPool, "DELETE FROM "+p.s.quoted()+".semel_record")
	w, calls := newWorker(p), append(poll("a"), redeemed)
	ends := p.a.Prefetcher().Prefetch(t.Context(), calls).Run(t.Context(), w.rows(calls))
	if ends[0].Err != nil || !errors.Is(ends[1].Err, semel.ErrExpired) {
		t.Errorf("%v, %v", ends[0].Err, ends[1].Err)
	}
	p.want(t, "a")
	if r, err := p.record(t, "reserved"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("there is a record: %v, error %v", r.State, err)
	}
}

// The clock was set back after a sweep. A new record of a swept key has a higher
// fencing token than any removed one, and its handler sees it.
func TestPrefetch_AfterSweep_FenceGrows(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	swept := store.Micros(time.Now().Add(24 * time.Hour))
	mustExec(t, p.s.appPool, "UPDATE "+p.s.quoted()+".semel_meta SET swept_fence = $1", swept)
	calls := poll("k", "l")
	for _, locked := range []bool{false, true} {
		p.a.foundLockedKey.Store(locked)
		n := p.a.Prefetcher().Prefetch(t.Context(), calls)
		if !n.waitPrefetched() || n.batch.prefetch.written != 2 {
			t.Fatal("nothing is recorded ahead")
		}
		fences := map[string]uint64{}
		wantDone(t, n.Run(t.Context(), func(_ context.Context, newCalls []*PendingCall) error {
			for _, f := range newCalls {
				fences[f.Execution.Key()] = f.Execution.Fence()
			}
			return nil
		}), false, false)
		for key, fence := range fences {
			if r, err := p.record(t, key); err != nil || r.Fence != fence || fence <= uint64(swept) { //nolint:gosec // it is a time
				t.Errorf("%s: the record's fence is %d, the handler's %d, and that of the sweep %d; error %v", key, r.Fence, fence, swept, err)
			}
		}
		calls = poll("m", "n")
	}
}

// Drop waits for a prefetch in flight, because the next batch reuses its memory.
func TestPrefetch_DropInFlight_Waits(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	tx := beginTx(t, p.s, txDefaults)
	mustExec(t, tx, "LOCK TABLE "+p.s.quoted()+".semel_record")
	n := p.a.Prefetcher().Prefetch(t.Context(), poll("a", "b"))
	dropped := make(chan bool, 1)
	go func() {
		n.Drop()
		n.prefetcher.mu.Lock()
		defer n.prefetcher.mu.Unlock()
		dropped <- n.inFlight
	}()
	waitFor(t, "it is to be dropped", func() bool {
		n.prefetcher.mu.Lock()
		defer n.prefetcher.mu.Unlock()
		return n.dropped
	})
	waitFor(t, "the look waits", func() bool {
		return ask[int](t, p.s.ownPool, "SELECT count(*)::int FROM pg_locks WHERE NOT granted AND relation = $1::regclass", p.s.quoted()+".semel_record") > 0
	})
	if len(dropped) > 0 {
		t.Error("it was dropped while the look was on its way")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if <-dropped {
		t.Error("when it was dropped the look was on its way")
	}
}
