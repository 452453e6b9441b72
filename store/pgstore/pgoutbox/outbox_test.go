package pgoutbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// naive is how an outbox must not be read: by a position that grows.
func (p *shop) naive(t *testing.T, last *int64) (ids []string) {
	t.Helper()
	rows, err := p.app.Query(t.Context(), "SELECT position, id FROM "+pgwire.DatabaseOf(p.st).Schema+".semel_outbox WHERE position > $1 ORDER BY position", *last)
	if err != nil {
		t.Fatal(err)
	}
	var id string
	if _, err := pgx.ForEachRow(rows, []any{last, &id}, func() error { ids = append(ids, id); return nil }); err != nil {
		t.Fatal(err)
	}
	return ids
}

// The transaction with the lower position commits after the other one was published. The
// control, which reads by position, loses its message.
func TestPublisher_CommitsLateWithLowerPosition_IsSent(t *testing.T) {
	p, sink := newShop(t), &outboxtest.Sink{}
	last := int64(0)
	late, early := p.begin(t), p.begin(t)
	for _, put := range []struct {
		tx  outboxtest.Tx
		key string
	}{{late, "late"}, {early, "early"}} {
		if err := put.tx.Put(t.Context(), message(put.key, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := early.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := p.naive(t, &last); !slices.Equal(got, []string{"early-1"}) {
		t.Fatalf("the control found %q first", got)
	}
	p.start(t, sink, nil)
	wait(t, sink, 1)
	if err := late.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := p.naive(t, &last); len(got) != 0 {
		t.Errorf("the control found %q; it is to lose the late message, or this test shows nothing", got)
	}
	wait(t, sink, 2)
	if sent := sink.Sent(); sent[0].ID != "early-1" || sent[1].ID != "late-1" {
		t.Errorf("sent %v", sent)
	}
}

// A transaction that is open for a long time, with an id, delays no other one's messages.
// A publisher that waits for pg_snapshot_xmin would wait for it.
func TestPublisher_LongTransactionElsewhere_DelaysNothing(t *testing.T) {
	p, sink := newShop(t), &outboxtest.Sink{}
	long, err := p.app.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer long.Rollback(context.Background())
	if _, err := long.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
		t.Fatal(err)
	}
	p.start(t, sink, nil)
	p.put(t, message("k", 1))
	wait(t, sink, 1)
}

// The order of the commits of a key is the order of its messages, also if the
// transactions began in another order, and have older ids.
func TestPut_TransactionWithOlderID_WritesLater_IsLater(t *testing.T) {
	p, sink := newShop(t), &outboxtest.Sink{}
	older := p.begin(t)
	if _, err := older.(tx).Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
		t.Fatal(err)
	}
	p.put(t, message("k", 1))
	if err := errors.Join(older.Put(t.Context(), message("k", 2)), older.Commit()); err != nil {
		t.Fatal(err)
	}
	p.put(t, message("k", 3))
	p.start(t, sink, nil)
	wait(t, sink, 3)
	for i, m := range sink.Sent() {
		if m.ID != fmt.Sprint("k-", i+1) {
			t.Errorf("message %d is %s", i, m.ID)
		}
	}
}

// Messages of a database that was dumped and restored into another server, where
// transaction ids are smaller, are published at once, although the dump has leases of a
// publisher that is gone, and a clock ahead.
func TestPublisher_DatabaseRestored_GoesOn(t *testing.T) {
	old, fresh := pgtest.Start(t, pgtest.Fast...), pgtest.Start(t, pgtest.Fast...)
	bin, err := pgtest.Bin()
	if err != nil {
		t.Fatal(err)
	}
	p := openShop(t, old.URL(), "semel")
	for range 50 { // so that the new server's ids are smaller
		if _, err := p.app.Exec(t.Context(), "SELECT pg_current_xact_id()"); err != nil {
			t.Fatal(err)
		}
	}
	p.put(t, message("a", 1), message("a", 2), message("b", 1))
	lanes, _, err := p.box.Lease(t.Context(), "gone", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := p.box.Take(t.Context(), lanes, nil, nil, 10)
	if err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(taken, func(m outbox.Taken) bool { return m.ID == "a-1" })
	if err := p.box.Settle(t.Context(), []outbox.Result{{Taken: &taken[first], Kind: outbox.Failed, Delay: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.box.Take(t.Context(), lanes, nil, nil, 10); err != nil { // holds a-2
		t.Fatal(err)
	}
	// The clock of the old server was two days ahead.
	for _, sql := range []string{
		"UPDATE semel.semel_outbox_lane SET until = until + 172800000000", "UPDATE semel.semel_outbox_publisher SET until = until + 172800000000",
		"UPDATE semel.semel_outbox_key SET retry_at = retry_at + 172800000000",
	} {
		if _, err := p.app.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	dump := filepath.Join(t.TempDir(), "dump.sql")
	for _, args := range [][]string{{"pg_dump", "--file", dump, old.URL()}, {"psql", "--quiet", "--file", dump, fresh.URL()}} {
		if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, args[0]), args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", args[0], err, out)
		}
	}
	restored, sink := openShop(t, fresh.URL(), "semel"), &outboxtest.Sink{}
	restored.start(t, sink, nil)
	wait(t, sink, 3)
	restored.put(t, message("a", 3))
	wait(t, sink, 4)
	var a []string
	for _, m := range sink.Sent() {
		if strings.HasPrefix(m.ID, "a-") {
			a = append(a, m.ID)
		}
	}
	if !slices.Equal(a, []string{"a-1", "a-2", "a-3"}) {
		t.Errorf("sent %q", a)
	}
}

// Messages are written in handlers of Atomic, by pgx and by database/sql: they commit
// with the effect and the record. Runs that fail write none.
func TestAtomic_PutInHandler_MessageCommitsWithEffect(t *testing.T) {
	p, sink := newShop(t), &outboxtest.Sink{}
	bank, err := pgstore.NewAtomic(p.st, nil)
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	call := func(key string) semel.Call {
		return semel.Call{Operation: "order", Tenant: "ann", Key: key, Payload: semel.NoPayload()}
	}
	byPgx := func(fails bool) error {
		return pgstore.Once(t.Context(), bank, call("pgx"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) error {
			err := p.box.Put(ctx, tx, outbox.Message{Topic: "orders", OrderKey: "ann", ID: x.DownstreamKey("placed")})
			if fails {
				return errors.Join(boom, err)
			}
			return err
		})
	}
	bySQL := func(fails bool) error {
		_, err := pgstore.DoSQL(t.Context(), bank, p.db, call("sql"), func(ctx context.Context, x *semel.Execution, tx *sql.Tx) (int, error) {
			err := p.box.PutSQL(ctx, tx, outbox.Message{Topic: "orders", OrderKey: "ann", ID: x.DownstreamKey("placed")})
			if fails {
				return 0, errors.Join(boom, err)
			}
			return 1, err
		})
		return err
	}
	for _, run := range []func(bool) error{byPgx, bySQL} {
		if err := run(true); !errors.Is(err, boom) {
			t.Fatal(err)
		}
		for range 3 {
			if err := run(false); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s, err := p.box.Stats(t.Context()); err != nil || s.Waiting != 2 {
		t.Errorf("%+v, %v; want 2 messages", s, err)
	}
	p.start(t, sink, nil)
	wait(t, sink, 2)
}

// An idle publisher sends a message at once, although it polls every hour.
func TestPublisher_Idle_IsNotified(t *testing.T) {
	p, sink := newShop(t), &outboxtest.Sink{}
	p.start(t, sink, &outbox.Options{Poll: time.Hour})
	p.put(t, message("k", 0))
	wait(t, sink, 1)
	for n := 1; n < 4; n++ {
		<-time.After(600 * time.Millisecond) // it polls often for half a second after a message
		p.put(t, message("k", n))
		wait(t, sink, n+1)
	}
}

// Two transactions write messages of two keys in opposite order.
func TestPut_TwoKeysInOppositeOrder_OnePutLocksInOneOrder(t *testing.T) {
	p := newShop(t)
	done := make(chan error, 2)
	for _, keys := range [][2]string{{"a", "b"}, {"b", "a"}} {
		go func() {
			var err error
			for n := range 30 {
				err = errors.Join(err, pgx.BeginFunc(t.Context(), p.app, func(tx pgx.Tx) error {
					return p.box.Put(t.Context(), tx, message(keys[0], n), message(keys[1], n))
				}))
			}
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// Stats reads no sent message, and no body of a waiting one.
func TestStats_ManyMessages_ReadsTheIndexOnly(t *testing.T) {
	p := newShop(t)
	messages := make([]outbox.Message, 2000)
	for i := range messages {
		messages[i] = message(fmt.Sprint("k", i%100), i)
	}
	p.put(t, messages...)
	schema := pgwire.DatabaseOf(p.st).Schema
	err := pgx.BeginFunc(t.Context(), p.app, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "LOCK TABLE "+schema+".semel_outbox_sent IN ACCESS EXCLUSIVE MODE"); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		s, err := p.box.Stats(limited) // it would wait for the lock
		if s.Waiting != 2000 || s.OldestAge <= 0 {
			t.Errorf("%+v, want 2000 waiting messages", s)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var plan []string
	err = pgx.BeginFunc(t.Context(), p.app, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), byIndex); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), "EXPLAIN "+p.box.sql.stats)
		if err == nil {
			plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if text := strings.Join(plan, "\n"); err != nil || strings.Contains(text, "Seq Scan on semel_outbox ") || !strings.Contains(text, "Index Only Scan using semel_outbox_pkey") {
		t.Errorf("the plan is\n%s\n%v", text, err)
	}
}
