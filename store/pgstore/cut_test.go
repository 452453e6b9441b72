package pgstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// openThrough opens the store of first again. Its own connections go to the server
// directly; the connections of the application go through url.
func openThrough(t *testing.T, first *Store, url string) *Store {
	t.Helper()
	app, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	s, err := open(t.Context(), first.ownPool.Config(), app, &Options{Schema: first.options.Schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestAtomic_CommitUnanswered_OutcomeFound(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]bool{"the server has committed": true, "the server never saw it": false} {
		for mode, text := range map[string]string{"exec": "COMMIT", "cache_statement": "\x00" + cachedName(commitStatement) + "\x00"} {
			t.Run(name+", by "+mode, func(t *testing.T) {
				first := openNew(t, nil)
				c, through := cuttest.New(t, pgtest.URL(t), after)
				s := openThrough(t, first, strings.Replace(through, "mode=exec", "mode="+mode, 1))
				p := newShop(t, s, nil)
				for i := range 10 {
					key := itoa(i)
					for range 2 { // then the connection's statements are prepared
						_, _ = Do(t.Context(), p.a, call("warm"), p.pay("warm", semel.NoEffect(errors.New("no effect"))))
					}
					c.At(text)
					got, err := Do(t.Context(), p.a, call(key), p.pay(key, nil))
					if after && (err != nil || got != "receipt of "+key) {
						t.Errorf("a commit that got through: %q, %v", got, err)
					}
					if !after && err == nil {
						t.Error("a commit that did not get through: no error")
					}
					if got, err := Do(t.Context(), p.a, call(key), p.pay(key, nil)); err != nil || got != "receipt of "+key {
						t.Errorf("the next call: %q, %v", got, err)
					}
				}
				if n := len(p.payments(t)); n != 10 || c.Cuts.Load() != 10 {
					t.Errorf("%d cuts, %d effects of 10 keys", c.Cuts.Load(), n)
				}
			})
		}
	}
}

// A leased claim, or settlement, whose reply is lost: sent again it finds its
// own, and nothing happens twice.
func TestStore_RequestUnanswered_SafeToRepeat(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{true, false} {
		t.Run(fmt.Sprint("carried out: ", after), func(t *testing.T) {
			first := openNew(t, nil)
			c, through := cuttest.New(t, pgtest.URL(t), after)
			s := openAt(t, through, &Options{Schema: first.options.Schema})
			for i := range 10 {
				p := proposal(itoa(i))
				c.At("INSERT INTO")
				if f, err := s.Claim(t.Context(), p); err == nil {
					t.Errorf("a claim without an answer: %+v", f)
				}
				f, err := s.Claim(t.Context(), p)
				if err != nil || !f.Won {
					t.Fatalf("the claim again: won %v, error %v", f.Won, err)
				}
				c.At("UPDATE")
				if err := s.Settle(t.Context(), f.Record.Lease(), completion("x")); err == nil {
					t.Error("a settlement without an answer: nil")
				}
				if err := s.Settle(t.Context(), f.Record.Lease(), completion("x")); err != nil {
					t.Errorf("the settlement again: %v", err)
				}
				if r := get(t, first, itoa(i)); r.State != store.Completed {
					t.Errorf("it is %v", r.State)
				}
			}
			if c.Cuts.Load() != 20 {
				t.Errorf("%d cuts, want 20", c.Cuts.Load())
			}
		})
	}
}

// Nor does a batch say of its leases that they are lost: nobody has said so.
func TestSettleBatch_Unanswered_LeasesNotLost(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{true, false} {
		first := openNew(t, nil)
		c, through := cuttest.New(t, pgtest.URL(t), after)
		s := openAt(t, through, &Options{Schema: first.options.Schema})
		var items []*settleItem
		for i := range 3 {
			was, e := claim(t, s, itoa(i)), completion("x")
			l := was.Lease()
			r, _ := newSettleRequest(&l, &e)
			items = append(items, &settleItem{Req: r})
		}
		c.At("UPDATE")
		s.flushSettles(t.Context(), items)
		for i, it := range items {
			if it.Err == nil || errors.Is(it.Err, errNotHeld) || errors.Is(it.Err, errSendAlone) || errors.Is(it.Err, store.ErrLeaseLost) {
				t.Errorf("carried out: %v; settlement %d: %v", after, i, it.Err)
			}
		}
		for i, it := range items {
			if err := s.Settle(t.Context(), *it.Req.lease, *it.Req.settlement); err != nil || get(t, first, itoa(i)).State != store.Completed {
				t.Errorf("carried out: %v; settlement %d again: %v", after, i, err)
			}
		}
		if n := c.Cuts.Load(); n != 1 {
			t.Errorf("%d cuts, want 1", n)
		}
	}
}

// A commit that hangs: the caller's context ends first.
func TestAtomic_CommitHangs_OutcomeFound(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	won := proposal("k")
	if is, err := p.s.committedAndSettled(ctx, &won); is || err != nil {
		t.Errorf("a key without a record: %v, %v", is, err)
	}
	tx := beginTx(t, p.s, txDefaults)
	if _, err := p.s.Tx(tx).Claim(ctx, won); err != nil {
		t.Fatal(err)
	}
	answer := make(chan bool, 1)
	go func() {
		is, err := p.s.committedAndSettled(ctx, &won)
		if err != nil {
			t.Error(err)
		}
		answer <- is
	}()
	waitFor(t, "it waits for the key's lock", func() bool {
		return ask[int](t, p.s.ownPool, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") > 0
	})
	f, err := p.s.Tx(tx).Claim(ctx, won)
	if err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	if err := p.s.Tx(tx).Settle(ctx, f.Record.Lease(), completion("x")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if !<-answer {
		t.Error("what was committed is not found")
	}
}

// cachedName is the name under which pgx prepares a statement in mode
// cache_statement.
func cachedName(sql string) string {
	sum := sha256.Sum256([]byte(sql))
	return "stmtcache_" + hex.EncodeToString(sum[:24])
}

// A process freezes while it looks whether its commit was carried out, and holds the lock
// of the key. Others get the key after Options.MaxIdleTx.
func TestAtomic_LookupFreezes_KeyBecomesFree(t *testing.T) {
	t.Parallel()
	first := openNew(t, nil)
	c, through := cuttest.New(t, pgtest.URL(t), false)
	c.Freeze = true
	frozen := openAt(t, through, &Options{Schema: first.options.Schema, MaxIdleTx: 2 * time.Second})
	p := newShop(t, first, nil)
	won := proposal("k")
	won.Key = store.Key{Operation: "pay", Tenant: "ann", Value: "k"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		waitFor(t, "it is cut off", func() bool { return c.Cuts.Load() > 0 })
		cancel()
	}()
	c.At("semel_record")
	if _, err := frozen.committedAndSettled(ctx, &won); err == nil || c.Cuts.Load() != 1 {
		t.Fatalf("%v, %d cuts: this test shows nothing", err, c.Cuts.Load())
	}
	other := call("k")
	other.Wait = 20 * time.Second // less than the default of MaxIdleTx
	if _, err := Do(t.Context(), p.a, other, p.pay("k", nil)); err != nil {
		t.Errorf("another call with the key: %v", err)
	}
}
