package pgstore

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// A prefetch finds the existing record of each key, whether it reads the whole row or
// only the columns that differ. Only completed keys need no lock.
func TestPrefetch_ExistingRecord_AnswersAsRun(t *testing.T) {
	rows := []struct {
		key, set string
		kept     bool
	}{
		{"as it is", "", true},
		{"another holder", `holder = 'another'`, true},
		{"another owner, no fence", `owner = gen_random_uuid(), fence = 0`, true},
		{"other times", `created = 1, updated = 1700000000000001, expires = 4000000000000000`, true},
		{"another payload", `fingerprint = 'other'`, true},
		{"a fingerprint of another kind", `fingerprint_alg = 'other'`, false},
		{"another secret", `fingerprint_key = 'other'`, false},
		{"failed", `state = 5`, false},
		{"parks", `policy = 1`, false},
		{"the second attempt", `attempt = 2`, false},
		{"an error before", `last_error = 'why'`, false},
		{"a code", `code = 1`, false},
		{"gone", `gone = true`, false},
		{"a codec", `codec = 'json'`, false},
		{"a header", `header = '[["a","b"]]'`, false},
		{"a body", `body = 'x'`, false},
		{"a body that is empty", `body = ''`, false},
		{"an end of something", `until = 1`, false},
		{"unknown", `state = 6, expires = 0`, false},
		{"has expired", `expires = 1700000000000000`, false},
		{"expires with the next tick", `expires = 1700000000000001`, true},
	}
	bothTables(t, func(t *testing.T, partitions int) {
		for _, spelled := range []bool{false, true} {
			p := newShop(t, openNew(t, &Options{clock: "1700000000000000", Partitions: partitions}), nil)
			p.s.txSQL = table.NewStatements(p.s.options.Schema, p.s.options.clock, false, spelled)
			w := newWorker(p)
			calls := make([]semel.Call, 0, len(rows)+1)
			for _, r := range rows {
				calls = append(calls, semel.Call{Operation: "pay", Tenant: "ann", Key: r.key, Payload: semel.Bytes([]byte("body"))})
			}
			for _, e := range p.a.RunBatch(t.Context(), calls, w.rows(calls)) {
				if e.Err != nil {
					t.Fatal(e.Err)
				}
			}
			for _, r := range rows {
				if r.set != "" {
					mustExec(t, p.s.appPool, "UPDATE "+p.s.quoted()+".semel_record SET "+r.set+" WHERE key = $1", []byte(r.key))
				}
			}
			calls = append(calls, semel.Call{Operation: "pay", Tenant: "ann", Key: "new", Payload: semel.Bytes([]byte("body"))})
			n := p.a.Prefetcher().Prefetch(t.Context(), calls)
			if !n.waitPrefetched() {
				t.Fatal("there was no look")
			}
			locks := 1 // for the new key
			for i, r := range rows {
				v := &n.batch.calls[i]
				want, err := p.s.Get(t.Context(), v.proposal.Key)
				if err != nil {
					t.Fatal(err)
				}
				if !r.kept {
					locks++
				}
				if (v.prefetched.completed != nil) != r.kept || (v.prefetched.state != nil) == r.kept {
					t.Errorf("%s: found %+v and %+v; what differs: want %v", r.key, v.prefetched.completed, v.prefetched.state, r.kept)
					continue
				}
				if got, is, err := n.batch.prefetch.claim(v, &v.proposal); err != nil || !is || !reflect.DeepEqual(got.Record, want.Record) || !got.Now.Equal(want.Now) || got.Won {
					t.Errorf("%s: found\n%+v, %v, %v; there is\n%+v", r.key, got, is, err, want)
				}
			}
			if got := ask[int](t, p.s.appPool, "SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = $1", n.tx.pipeline.Conn().PgConn().PID()); got != locks {
				t.Errorf("%d keys are locked, want %d", got, locks)
			}
			n.Drop()
		}
	})
}

// Duplicates among new keys: completed keys are not locked, and the others are
// inserted with one more statement.
func TestPrefetch_CompletedKeys_LeftOut(t *testing.T) {
	bothTables(t, func(t *testing.T, partitions int) {
		p := newShop(t, openNew(t, &Options{Partitions: partitions}), nil)
		w, q := newWorker(p), p.a.Prefetcher()
		wantDone(t, q.Prefetch(t.Context(), poll("b", "d")).Run(t.Context(), w.rows(poll("b", "d"))), false, false)
		for _, c := range []struct {
			keys []string
			dups []bool
		}{{[]string{"a", "b", "c", "d"}, []bool{false, true, false, true}}, {[]string{"b", "d"}, []bool{true, true}}} {
			calls := poll(c.keys...)
			n := q.Prefetch(t.Context(), calls)
			if !n.waitPrefetched() {
				t.Fatal("there was no look")
			}
			newCalls := 0
			for i, dup := range c.dups {
				if a := &n.batch.calls[i].prefetched; (a.completed != nil) != dup || a.state != nil {
					t.Errorf("%s: found %+v and %+v", c.keys[i], a.completed, a.state)
				}
				if !dup {
					newCalls++
				}
			}
			if n.batch.prefetch.written != newCalls {
				t.Errorf("%d are recorded ahead, want %d", n.batch.prefetch.written, newCalls)
			}
			if got := ask[int](t, p.s.ownPool, "SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND pid = $1", n.tx.pipeline.Conn().PgConn().PID()); got != newCalls {
				t.Errorf("%d keys are locked, want %d", got, newCalls)
			}
			wantDone(t, n.Run(t.Context(), w.rows(calls)), c.dups...)
		}
		p.want(t, "a", "b", "c", "d")
	})
}

// A row that makes no sense, or is another key's, is an error all the same.
func TestPrefetch_UnreadableRow_NotReplayed(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"key = 'other'", "operation = 'other'", "tenant = 'other'", "format = 2", "fence = -1"} {
		p := newShop(t, openNew(t, nil), nil)
		w, calls := newWorker(p), poll("k", "l")
		p.a.RunBatch(t.Context(), calls, w.rows(calls))
		mustExec(t, p.s.appPool, "UPDATE "+p.s.quoted()+".semel_record SET "+set+" WHERE key = 'k'")
		n := p.a.Prefetcher().Prefetch(t.Context(), calls)
		if !n.waitPrefetched() {
			t.Fatal("there was no look")
		}
		ends := n.Run(t.Context(), w.rows(calls))
		if !errors.Is(ends[0].Err, store.ErrCorrupt) || ends[1].Err != nil || !ends[1].Replayed {
			t.Errorf("%s: %v, %v", set, ends[0].Err, ends[1].Err)
		}
	}
}

// Two keys have the same id. The second is no duplicate of the first, because each
// reader compares the key.
func TestPrefetch_SameIDOtherKey_NotDuplicate(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	w, q := newWorker(p), p.a.Prefetcher()
	wantDone(t, q.Prefetch(t.Context(), poll("k", "l")).Run(t.Context(), w.rows(poll("k", "l"))), false, false)
	n := q.Prefetch(t.Context(), poll("k", "l"))
	defer n.Drop()
	if !n.waitPrefetched() {
		t.Fatal("there was no look")
	}
	k, other := &n.batch.calls[0], &n.batch.calls[1]
	other.prefetched = prefetchResult{firstCall: k} // as if it had that id
	f, is, err := n.batch.prefetch.claim(other, &other.proposal)
	if err != nil || !is || f.Record.Key != k.proposal.Key {
		t.Errorf("found a record of %v: %v, %v; want that of %v", f.Record.Key, is, err, k.proposal.Key)
	}
}

// The payload of a duplicate is compared, though its record is not sent whole.
func TestPrefetch_OtherPayload_Mismatch(t *testing.T) {
	t.Parallel()
	throughBoth(t, func(t *testing.T, p *shop) {
		w, q := newWorker(p), p.a.Prefetcher()
		of := func(body string) []semel.Call {
			return []semel.Call{{Operation: "pay", Tenant: "ann", Key: "k", Payload: semel.Bytes([]byte(body))}, {Operation: "pay", Tenant: "ann", Key: "l", Payload: semel.Bytes([]byte("same"))}}
		}
		first, second := of("one"), of("other")
		wantDone(t, q.Prefetch(t.Context(), first).Run(t.Context(), w.rows(first)), false, false)
		n := q.Prefetch(t.Context(), second)
		if !n.waitPrefetched() || n.batch.calls[0].prefetched.completed == nil {
			t.Fatal("its record was sent whole")
		}
		ends := n.Run(t.Context(), w.rows(second))
		if !errors.Is(ends[0].Err, semel.ErrMismatch) || ends[1].Err != nil || !ends[1].Replayed || w.runs["k"] != 1 {
			t.Errorf("%v; %+v; %d runs", ends[0].Err, ends[1], w.runs["k"])
		}
	})
}

// The plans of a prefetch stay good when the table has grown, and the statements of
// the handler are planned with its own settings.
func TestPlan_PrefetchMadeForSmallTable_UsesIndex(t *testing.T) {
	bothTables(t, func(t *testing.T, partitions int) {
		p := newShop(t, openNew(t, &Options{Partitions: partitions}), nil)
		noVacuum(t, p.s)
		mustExec(t, p.s.appPool, "CREATE INDEX ON "+p.table+" (key)")
		w, q := newWorker(p), p.a.Prefetcher()
		was := ask[string](t, p.s.appPool, "SELECT current_setting('plan_cache_mode') || current_setting('enable_seqscan')")
		step := func(keys, dups []string) {
			calls := poll(append(dups, keys...)...)
			n := q.Prefetch(t.Context(), calls)
			if !n.waitPrefetched() {
				t.Fatal("there was no look")
			}
			for _, e := range n.Run(t.Context(), func(ctx context.Context, newCalls []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				if is := ask[string](t, tx, "SELECT current_setting('plan_cache_mode') || current_setting('enable_seqscan')"); is != was {
					t.Errorf("settings were %q, and are %q", was, is)
				}
				return w.rows(calls)(ctx, newCalls)
			}) {
				if e.Err != nil {
					t.Fatal(e.Err)
				}
			}
		}
		last := []string(nil)
		for round, prefix := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
			keys := numbered(prefix, 64)
			step(keys, last)
			if last = keys; round%3 == 2 {
				last = nil // new ones only
			}
			if round == 0 {
				mustExec(t, p.s.ownPool, "ANALYZE "+p.s.quoted()+".semel_record")
			}
		}
		fill(t, p.s.ownPool, p.s.quoted()+".semel_record")
		before := scans(t, p.s)
		for _, prefix := range []string{"k", "l", "m", "n", "o", "p"} {
			keys := numbered(prefix, 64)
			step(keys, last)
			last = keys
		}
		mustExec(t, p.s.appPool, "SELECT pg_stat_force_next_flush()")
		if n := scans(t, p.s) - before; n != 0 {
			t.Errorf("looks ahead read the whole table %d times", n)
		}
	})
}
