package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// holdKey has a transaction of another that holds a key, until it is let go.
func (p *shop) holdKey(t *testing.T, key string) (letGo func()) {
	t.Helper()
	tx, err := p.s.appPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if err := semel.Once(t.Context(), p.a.In(tx), call(key), func(context.Context, *semel.Execution) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback(context.Background()) }
}

func TestPrefetch_KeyLockedElsewhere_LookedUpAgain(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	w, calls := newWorker(p), poll("a", "held", "z")
	letGo := p.holdKey(t, "held")
	n := p.a.Prefetcher().Prefetch(t.Context(), calls)
	if !n.waitPrefetched() {
		t.Fatal("there was no look")
	}
	if !p.a.foundLockedKey.Load() {
		t.Error("the next look guesses that no key is another's")
	}
	letGo()
	wantDone(t, n.Run(t.Context(), w.rows(calls)), false, false, false)
	if w.runs["held"] != 1 {
		t.Errorf("%d runs", w.runs["held"])
	}
	if p.a.foundLockedKey.Load() {
		t.Error("the next look does not guess")
	}
}

// A look writes no record of a key that is another's, so that it is in nobody's
// way; and where it guesses that there is none, of no key at all.
func TestPrefetch_KeyLockedElsewhere_NotWritten(t *testing.T) {
	t.Parallel()
	for _, g := range []expectation{newOrCompleted, anything} {
		p := newShop(t, openNew(t, nil), nil)
		p.holdKey(t, "held")
		y := p.a.newPrefetch(t.Context(), poll("a", "held", "z"))
		own := p.a.newOwnTx()
		if err := own.connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		y.setTx(&own.storeTx)
		err := y.lockAndInsert(t.Context(), y.prefetch.rows, g)
		want, wrote := errNotNew, 0
		if g == anything {
			want, wrote = nil, 2
		}
		if !errors.Is(err, want) {
			t.Errorf("guess %v: %v, want %v", g, err, want)
		}
		if n := ask[int](t, own.pipeline.Conn(), "SELECT count(*)::int FROM "+p.s.quoted()+".semel_record"); n != wrote {
			t.Errorf("guess %v: %d records are written, want %d", g, n, wrote)
		}
		own.end()
	}
}

// A prefetched record is committed only if the handler ends as the record says.
func TestPrefetch_RecordInserted_EndsOnce(t *testing.T) {
	t.Parallel()
	as := store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour}
	lease := store.Lease{Fence: 7, Owner: store.Owner{1}}
	ends := func(l store.Lease, s store.Settlement) bool {
		v := &batchCall{prefetched: prefetchResult{inserted: &insertion{fence: 7}}, proposal: store.Proposal{Owner: store.Owner{1}}}
		w := &prefetch{settlement: as}
		w.settle(v, &l, &s)
		if v.prefetched.confirmed != (w.confirmed == 1) {
			t.Errorf("done %v, of which there are %d", v.prefetched.confirmed, w.confirmed)
		}
		return v.prefetched.confirmed
	}
	if !ends(lease, as) {
		t.Error("it does not stand for itself")
	}
	for name, change := range map[string]func(*store.Lease, *store.Settlement){
		"another state":   func(_ *store.Lease, s *store.Settlement) { s.State = store.Failed },
		"another attempt": func(_ *store.Lease, s *store.Settlement) { s.Attempt = 2 },
		"an error":        func(_ *store.Lease, s *store.Settlement) { s.Error = "no" },
		"another keep":    func(_ *store.Lease, s *store.Settlement) { s.Keep++ },
		"a code":          func(_ *store.Lease, s *store.Settlement) { s.Outcome.Code = 200 },
		"a body":          func(_ *store.Lease, s *store.Settlement) { s.Outcome.Body = []byte("b") },
		"no body":         func(_ *store.Lease, s *store.Settlement) { s.Outcome.Gone = true },
		"a codec":         func(_ *store.Lease, s *store.Settlement) { s.Outcome.Codec = "json" },
		"a header":        func(_ *store.Lease, s *store.Settlement) { s.Outcome.Header = []store.Header{{Name: "A"}} },
		"another fence":   func(l *store.Lease, _ *store.Settlement) { l.Fence++ },
		"another owner":   func(l *store.Lease, _ *store.Settlement) { l.Owner[0]++ },
	} {
		l, s := lease, as
		if change(&l, &s); ends(l, s) {
			t.Errorf("it stands for an end with %s", name)
		}
	}
}
