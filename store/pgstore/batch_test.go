package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// claimBatch flushes claims as one batch, as the batcher does.
func claimBatch(s *Store, ps ...*store.Proposal) []*claimItem {
	items := make([]*claimItem, len(ps))
	for i, p := range ps {
		items[i] = &claimItem{Req: p}
	}
	s.flushClaims(context.Background(), items)
	return items
}

func TestClaimBatch_MixedKeys_AnswersAsSingleClaims(t *testing.T) {
	t.Parallel()
	s := openFixedClock(t)
	done := complete(t, s, "done", "result")
	held := claim(t, s, "held")
	fresh, again, dup, lost := proposal("fresh"), proposal("held"), proposal("done"), proposal("held")
	fresh.Policy, fresh.State, fresh.Error, fresh.Attempt = store.Park, store.Started, "e\x00\xff", 3
	fresh.Lease = time.Minute + 1500*time.Nanosecond
	again.Owner = held.Owner
	got := claimBatch(s, &fresh, &dup, &again)
	if f := got[0].Res; got[0].Err != nil || !f.Won || fmt.Sprint(f.Record) != fmt.Sprint(fresh.Insert(f.Now, 0)) || fmt.Sprint(get(t, s, "fresh")) != fmt.Sprint(f.Record) {
		t.Errorf("a new key in a batch: %+v, %v; the row is %+v", f, got[0].Err, get(t, s, "fresh"))
	}
	if f := got[1].Res; got[1].Err != nil || f.Won || fmt.Sprint(f.Record) != fmt.Sprint(done) {
		t.Errorf("a duplicate in a batch: %+v, %v", f, got[1].Err)
	}
	if f := got[2].Res; got[2].Err != nil || !f.Won || fmt.Sprint(f.Record) != fmt.Sprint(held) {
		t.Errorf("a claim sent again in a batch: %+v, %v", f, got[2].Err)
	}
	if got = claimBatch(s, &lost, &dup); got[0].Res.Won || got[0].Err != nil {
		t.Errorf("a lost claim in a batch: %+v, %v", got[0].Res, got[0].Err)
	}
}

// A batch of relaxed claims does not wait for the disk, unless it writes
// nothing, and no other statement is relaxed by it.
func TestClaimBatch_RelaxedClaims_CommitDoesNotWait(t *testing.T) {
	t.Parallel()
	for _, relaxed := range []bool{true, false} {
		s := openNew(t, &Options{RelaxedClaims: relaxed})
		complete(t, s, "done", "result")
		for _, c := range []struct {
			sql  string
			keys []string
			is   bool
		}{
			{s.sql.ClaimMany, []string{"a", "b", "done"}, relaxed},
			{s.sql.ClaimMany, []string{"done"}, false},
			{s.txSQL.ClaimMany, []string{"a", "b"}, false},
		} {
			byID := map[pgtype.UUID]*claimItem{}
			for _, key := range c.keys {
				p := proposal(key)
				byID[table.ID(p.Key)] = &claimItem{Req: &p}
			}
			tx, err := s.ownPool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			mustExec(t, tx, "SET LOCAL synchronous_commit = on")
			if tag, err := tx.Exec(t.Context(), c.sql, claimArrays(byID)...); err != nil || tag.RowsAffected() != int64(len(c.keys)) {
				t.Errorf("claims of %v: %v, error %v", c.keys, tag, err)
			}
			if got := ask[string](t, tx, "SELECT current_setting('synchronous_commit')"); (got == "off") != c.is {
				t.Errorf("relaxed %v: after claims of %v synchronous_commit is %s", relaxed, c.keys, got)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSettleBatch_MixedLeases_AnswersAsSingleSettlements(t *testing.T) {
	t.Parallel()
	s := openFixedClock(t)
	var items []*settleItem
	add := func(l store.Lease, t store.Settlement) {
		r, _ := newSettleRequest(&l, &t)
		items = append(items, &settleItem{Req: r})
	}
	a, b, c := claim(t, s, "a"), claim(t, s, "b"), claim(t, s, "c")
	zombie := c.Lease()
	zombie.Fence++
	add(a.Lease(), completion("body"))
	add(b.Lease(), store.Settlement{State: store.Released, Attempt: 7, Error: "e", Wait: time.Second, Keep: time.Minute})
	add(zombie, completion("late"))
	s.flushSettles(t.Context(), items)
	if items[0].Err != nil || items[1].Err != nil || !errors.Is(items[2].Err, errNotHeld) {
		t.Fatalf("answers are %v, %v, %v", items[0].Err, items[1].Err, items[2].Err)
	}
	for i, was := range []store.Record{a, b} {
		is := get(t, s, was.Key.Value)
		if want := items[i].Req.settlement.Apply(was, is.Updated); fmt.Sprint(is) != fmt.Sprint(want) {
			t.Errorf("settled in a batch it is\n%+v\nwant\n%+v", is, want)
		}
	}
	if is := get(t, s, "c"); fmt.Sprint(is) != fmt.Sprint(c) {
		t.Errorf("a zombie changed a row: %+v", is)
	}
	if err := s.Settle(t.Context(), a.Lease(), completion("body")); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if err := s.Settle(t.Context(), zombie, completion("late")); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("a zombie: %v, want ErrLeaseLost", err)
	}
}

// A row that the server refuses (here by a trigger) is refused alone.
func TestBatch_OneRowFails_OthersSucceed(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{Flushers: 1})
	mustExec(t, s.ownPool, fmt.Sprintf(`CREATE FUNCTION %[1]s.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN IF NEW.key = 'bad'::bytea THEN RAISE EXCEPTION 'a bad row'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON %[1]s.semel_record FOR EACH ROW EXECUTE FUNCTION %[1]s.refuse()`, s.quoted()))
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			if f, err := s.Claim(t.Context(), proposal(itoa(i))); err != nil || !f.Won {
				t.Errorf("claim %d beside a bad row: %v", i, err)
			}
		})
		all.Go(func() {
			if _, err := s.Claim(t.Context(), proposal("bad")); err == nil || !strings.Contains(err.Error(), "a bad row") {
				t.Errorf("a bad row: %v", err)
			}
		})
	}
	all.Wait()
}

func TestBatch_ManyStoresSameKeys_NoDeadlock(t *testing.T) {
	s := openNew(t, nil)
	o := s.options
	handles := []*Store{s, openAt(t, s.ownPool.Config().ConnString(), &o)}
	before := ask[int](t, s.ownPool, "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()")
	var all sync.WaitGroup
	var mu sync.Mutex
	winners := map[string]int{}
	for g := range 32 {
		all.Go(func() {
			for i := range 60 {
				key := itoa((i*7 + g) % 60)
				f, err := handles[g%2].Claim(t.Context(), proposal(key))
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				if !f.Won {
					continue
				}
				mu.Lock()
				winners[key]++
				mu.Unlock()
				l := f.Record.Lease()
				if errs, err := handles[g%2].Renew(t.Context(), []store.Lease{l}, time.Hour); err != nil || errs[0] != nil {
					t.Errorf("renew: %v, %v", errs, err)
				}
				if err := handles[g%2].Settle(t.Context(), l, completion(key)); err != nil {
					t.Errorf("settle: %v", err)
				}
			}
		})
	}
	all.Wait()
	if len(winners) != 60 {
		t.Errorf("%d keys were won, want 60", len(winners))
	}
	for k, n := range winners {
		if n != 1 {
			t.Errorf("%s was won %d times", k, n)
		}
	}
	if now := ask[int](t, s.ownPool, "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()"); now != before {
		t.Errorf("the server broke %d dead locks", now-before)
	}
}

// PgBouncer before 1.21 needs this mode.
func TestStore_NoPreparedStatements_Works(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheDescribe} {
		t.Run(mode.String(), func(t *testing.T) {
			first := openNew(t, nil)
			cfg := first.ownPool.Config()
			cfg.ConnConfig.DefaultQueryExecMode = mode
			o := first.options
			s, err := open(t.Context(), cfg, nil, &o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var all sync.WaitGroup
			for i := range 40 {
				all.Go(func() {
					r := complete(t, s, itoa(i), `{"n":1}`)
					if string(r.Outcome.Body) != `{"n":1}` || len(r.Outcome.Header) != 1 {
						t.Errorf("it came back as %+v", r.Outcome)
					}
				})
			}
			all.Wait()
			odd := proposal("\x00\xff")
			if f, err := s.Claim(t.Context(), odd); err != nil || !f.Won {
				t.Errorf("a key of any bytes: %v", err)
			}
			if errs, err := s.Renew(t.Context(), []store.Lease{{Key: odd.Key, Owner: odd.Owner, Fence: get(t, s, "\x00\xff").Fence}}, time.Hour); err != nil || errs[0] != nil {
				t.Errorf("Renew: %v, %v", errs, err)
			}
			n := 0
			for f, err := range s.List(t.Context(), store.Filter{States: []store.State{store.Completed}, Tenant: "acme"}) {
				if n++; err != nil || f.Record.State != store.Completed {
					t.Errorf("List: %v, %v", f.Record.State, err)
				}
			}
			if n != 40 {
				t.Errorf("List gave %d records, want 40", n)
			}
			if _, err := s.Sweep(t.Context(), "", 10); err != nil {
				t.Errorf("Sweep: %v", err)
			}
			if err := s.Check(t.Context()); err != nil && !errors.Is(err, ErrUnsafe) {
				t.Errorf("Check: %v", err)
			}
			p := newShop(t, s, nil)
			for range 2 {
				if got, err := Do(t.Context(), p.a, call("k"), p.pay("k", nil)); err != nil || got != "receipt of k" {
					t.Errorf("Atomic: %q, %v", got, err)
				}
			}
			p.want(t, "k")
		})
	}
}

// In a batch a column has one value for all rows if it is the same in all, or
// one for each.
func TestBatch_ColumnsDifferOrRepeat_AllStored(t *testing.T) {
	t.Parallel()
	s := openFixedClock(t)
	for name, differ := range map[string]bool{"the same": false, "differing": true} {
		var ps []*store.Proposal
		for i := range 3 {
			p := proposal(fmt.Sprint(name, i))
			if differ {
				p.Key.Operation, p.Key.Tenant, p.Holder = fmt.Sprint("o", i), strings.Repeat("t", i), strings.Repeat("h", i)
				p.Attempt, p.Lease, p.Policy = i+1, time.Duration(i+1)*time.Minute, store.Policy(i%2)
				p.Fingerprint = store.Fingerprint{Alg: strings.Repeat("a", i), KeyID: strings.Repeat("k", i), Sum: strings.Repeat("s", i)}
			}
			ps = append(ps, &p)
		}
		var items []*settleItem
		var was []store.Record
		for i, it := range claimBatch(s, ps...) {
			if it.Err != nil || !it.Res.Won {
				t.Fatalf("%s: claim %d: won %v, error %v", name, i, it.Res.Won, it.Err)
			}
			f, err := s.Get(t.Context(), ps[i].Key)
			if err != nil || fmt.Sprint(f.Record) != fmt.Sprint(it.Res.Record) {
				t.Errorf("%s: claimed in a batch it is\n%+v, %v\nwant\n%+v", name, f.Record, err, it.Res.Record)
			}
			c := completion("result")
			if differ {
				c = []store.Settlement{
					{State: store.Completed, Attempt: 2, Keep: time.Hour, Outcome: store.Outcome{Code: 7, Gone: true, Codec: "json"}},
					{State: store.Released, Attempt: 3, Error: "e", Wait: time.Second, Keep: time.Minute},
					{State: store.Unknown, Attempt: 4, Error: "f"},
				}[i]
			}
			l := f.Record.Lease()
			r, _ := newSettleRequest(&l, &c)
			items, was = append(items, &settleItem{Req: r}), append(was, f.Record)
		}
		s.flushSettles(t.Context(), items)
		for i, it := range items {
			f, err := s.Get(t.Context(), ps[i].Key)
			if want := it.Req.settlement.Apply(was[i], f.Record.Updated); it.Err != nil || err != nil || fmt.Sprint(f.Record) != fmt.Sprint(want) {
				t.Errorf("%s: settled in a batch (%v) it is\n%+v, %v\nwant\n%+v", name, it.Err, f.Record, err, want)
			}
		}
	}
}

// A batch changes only rows that are held as it says, as a settlement alone does.
func TestSettleBatch_LeaseNotHeld_ChangesNothing(t *testing.T) {
	t.Parallel()
	s := openFixedClock(t)
	held, settled, stranger, old, parked := claim(t, s, "held"), complete(t, s, "settled", "first"), claim(t, s, "a stranger's"), claim(t, s, "of another fence"), claim(t, s, "parked")
	if err := s.Settle(t.Context(), parked.Lease(), store.Settlement{State: store.Unknown, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	leases := []store.Lease{held.Lease(), settled.Lease(), parked.Lease(), stranger.Lease(), old.Lease()}
	leases[3].Owner = newOwner()
	leases[4].Fence--
	var items []*settleItem
	was := map[string]string{}
	for _, l := range leases {
		c := completion("second")
		r, _ := newSettleRequest(&l, &c)
		items, was[l.Key.Value] = append(items, &settleItem{Req: r}), fmt.Sprint(get(t, s, l.Key.Value))
	}
	s.flushSettles(t.Context(), items)
	for i, it := range items {
		name := it.Req.lease.Key.Value
		if i == 0 {
			if it.Err != nil {
				t.Errorf("%s: %v", name, it.Err)
			}
			continue
		}
		if is := fmt.Sprint(get(t, s, name)); !errors.Is(it.Err, errNotHeld) || is != was[name] {
			t.Errorf("%s: %v; it was\n%s\nand is\n%s", name, it.Err, was[name], is)
		}
	}
}

// The server may have given all rows of a batch, and then not commit it.
func TestBatch_CommitFails_NotAcknowledged(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	good, bad := claim(t, s, "good"), claim(t, s, "UPDATE")
	mustExec(t, s.ownPool, fmt.Sprintf(`CREATE FUNCTION %[1]s.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN IF NEW.key = convert_to(TG_OP, 'UTF8') THEN RAISE EXCEPTION 'not committed'; END IF; RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER refuse AFTER INSERT OR UPDATE ON %[1]s.semel_record DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION %[1]s.refuse()`, s.quoted()))
	for _, it := range claimBatch(s, ptr(proposal("fresh")), ptr(proposal("INSERT"))) {
		if !errors.Is(it.Err, errSendAlone) || it.Res.Won {
			t.Errorf("claim of %s: won %v, error %v", it.Req.Key.Value, it.Res.Won, it.Err)
		}
		if _, err := s.Get(t.Context(), it.Req.Key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s is there: %v", it.Req.Key.Value, err)
		}
	}
	var items []*settleItem
	for _, r := range []store.Record{good, bad} {
		l, c := r.Lease(), completion("result")
		req, _ := newSettleRequest(&l, &c)
		items = append(items, &settleItem{Req: req})
	}
	s.flushSettles(t.Context(), items)
	for _, it := range items {
		name := it.Req.lease.Key.Value
		if is := get(t, s, name); !errors.Is(it.Err, errSendAlone) || is.State != store.Processing {
			t.Errorf("settlement of %s: error %v, it is %v", name, it.Err, is.State)
		}
	}
	if err := s.Settle(t.Context(), good.Lease(), completion("result")); err != nil {
		t.Errorf("the good one alone: %v", err)
	}
	if err := s.Settle(t.Context(), bad.Lease(), completion("result")); err == nil || !strings.Contains(err.Error(), "not committed") {
		t.Errorf("the bad one alone: %v", err)
	}
}

// A key that comes back in a batch has a higher fence than before it was swept,
// also if the clock was set back.
func TestClaimBatch_AfterSweep_FenceGrows(t *testing.T) {
	t.Parallel()
	s := openFixedClock(t)
	was := complete(t, s, "k", "result")
	advance(t, s, 2*time.Hour)
	sweepAll(t, s)
	if _, err := s.Get(t.Context(), testKey("k")); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("after the sweep: %v", err)
	}
	advance(t, s, -24*time.Hour)
	for _, it := range claimBatch(s, ptr(proposal("k")), ptr(proposal("other"))) {
		if f := it.Res; it.Err != nil || !f.Won || f.Record.Fence <= was.Fence || get(t, s, it.Req.Key.Value).Fence != f.Record.Fence {
			t.Errorf("%s: error %v, won %v with fence %d; before the sweep it was %d", it.Req.Key.Value, it.Err, f.Won, f.Record.Fence, was.Fence)
		}
	}
}
