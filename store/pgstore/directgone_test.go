package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// Somebody takes away what is prepared on the connection. No run fails by that.
func TestWhatIsPreparedMayBeTakenAway(t *testing.T) {
	for name, of := range map[string]func(c *crowded) string{
		"the begin":  func(*crowded) string { return beginSQL },
		"the look":   func(c *crowded) string { return c.s.txSQL.read },
		"the insert": func(c *crowded) string { return c.s.txSQL.insert },
		"the commit": func(*crowded) string { return commitSQL },
	} {
		t.Run(name+" between runs", func(t *testing.T) {
			c := newDirectCrowd(t, pgtest.URL(t), 1, nil)
			mustExec(t, c.app, "DEALLOCATE "+preparedName(of(c)))
			c.runs(t, "a", "b", "c")
		})
		t.Run(name+" before one is handed it", func(t *testing.T) {
			c := newDirectCrowd(t, pgtest.URL(t), 1, nil)
			first := c.holding(t, "a")
			second := c.start(t.Context(), "b")
			c.waits(t, 1)
			first.goOn <- func() error {
				_, err := first.tx.Exec(t.Context(), "DEALLOCATE "+preparedName(of(c)))
				first.goOn <- fine // of a second try
				return err
			}
			second.want(t, "b")
			if <-first.done; first.err != nil {
				t.Error("the first:", first.err)
			}
			c.want(t, "a", "b")
		})
		t.Run(name+" by a handler", func(t *testing.T) {
			c := newDirectCrowd(t, pgtest.URL(t), 1, nil)
			tries := 0
			if _, err := Do(t.Context(), c.a, call("a"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
				if tries++; x.Attempt() != 1 {
					t.Errorf("attempt %d", x.Attempt())
				}
				got, err := c.pay("a", nil)(ctx, x, tx)
				if err == nil && tries == 1 {
					_, err = tx.Exec(ctx, "DEALLOCATE "+preparedName(of(c)))
				}
				return got, err
			}); err != nil {
				t.Error(err)
			}
			c.runs(t, "a", "b", "c")
		})
	}
	t.Run("all, as pgx does it", func(t *testing.T) {
		c := newDirectCrowd(t, pgtest.URL(t), 1, nil)
		conn, err := c.app.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Conn().DeallocateAll(t.Context()); err != nil {
			t.Error(err)
		}
		conn.Release()
		c.runs(t, "a", "b", "c")
	})
	t.Run("all, and pgx does not know", func(t *testing.T) { // it finds out for one statement after the other
		c := newDirectCrowd(t, pgtest.URL(t), 1, nil)
		mustExec(t, c.app, "DISCARD ALL")
		for _, key := range []string{"a", "b", "c"} {
			for try := 0; ; try++ {
				_, err := Do(t.Context(), c.a, call(key), c.pay(key, nil))
				if err == nil {
					break
				}
				if code(err) != invalidStatementName || try == 5 {
					t.Fatal(err)
				}
			}
		}
		c.runs(t, "a", "b", "c")
	})
}

// What cannot be prepared fails as by pgx, and is well when its cause is gone.
func TestWhatTheServerDoesNotPrepare(t *testing.T) {
	for way, set := range map[string]func(*pgxpool.Config){
		"by pgx":   nil,
		"directly": func(cfg *pgxpool.Config) { cfg.ConnConfig.Tracer = nil },
	} {
		for _, first := range []bool{true, false} { // the first transaction goes by pgx
			t.Run(fmt.Sprint(way, ", at first: ", first), func(t *testing.T) {
				c := newCrowded(t, pgtest.URL(t), 1, set)
				if !first {
					c.holding(t, "a").want(t, "a")
				}
				mustExec(t, c.s.own, "ALTER TABLE "+c.s.quoted()+".semel_record RENAME TO gone")
				if _, err := Do(t.Context(), c.a, call("b"), c.pay("b", nil)); !errors.Is(err, ErrForeign) || !errors.Is(err, semel.ErrUnavailable) || code(err) != undefinedTable {
					t.Errorf("without its table: %v", err)
				}
				mustExec(t, c.s.own, "ALTER TABLE "+c.s.quoted()+".gone RENAME TO semel_record")
				c.runs(t, "a", "b", "c")
				if n := c.directly(t, c.s.txSQL.read); (n >= 0) != (way == "directly" && first) {
					t.Errorf("%d looks went directly; what was refused once is not tried again", n)
				}
			})
		}
	}
}

// One gives up while the server prepares for it.
func TestWhoWaitsForThePreparingMayGiveUp(t *testing.T) {
	c := newCrowded(t, pgtest.URL(t), 1, func(cfg *pgxpool.Config) { cfg.ConnConfig.Tracer = nil })
	c.holding(t, "a").want(t, "a") // the first goes by pgx
	tx, err := c.s.own.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	meta := c.s.quoted() + ".semel_meta"
	mustExec(t, tx, "LOCK TABLE "+meta)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	second := c.start(ctx, "b")
	waitFor(t, "it waits for the table", func() bool {
		return ask[bool](t, c.s.own, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = to_regclass($1))", meta)
	})
	cancel()
	if <-second.done; !errors.Is(second.err, context.Canceled) || second.ran.Load() {
		t.Errorf("who gave up: %v, ran: %v", second.err, second.ran.Load())
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	c.runs(t, "a", "c")
}

// An error of the application's that has the code of a plan that is out of date.
func TestACommitThatIsNotSupportedRunsNothingAgain(t *testing.T) {
	for way, newCrowd := range crowds {
		t.Run(way, func(t *testing.T) {
			c := newCrowd(t, pgtest.URL(t), 1, nil)
			fn := pgx.Identifier{c.s.opt.Schema, "refuse"}.Sanitize()
			mustExec(t, c.app, "CREATE FUNCTION "+fn+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not supported' USING ERRCODE = '0A000'; END $$")
			mustExec(t, c.app, "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON "+c.table+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.key = 'bad') EXECUTE FUNCTION "+fn+"()")
			ran := 0
			if _, err := Do(t.Context(), c.a, call("bad"), func(ctx context.Context, x *semel.Execution, tx pgx.Tx) (string, error) {
				ran++
				return c.pay("bad", nil)(ctx, x, tx)
			}); code(err) != featureNotSupported || ran != 1 {
				t.Errorf("it ran %d times: %v", ran, err)
			}
			c.runs(t, "a", "b")
			if n := c.directly(t, c.s.txSQL.read); (n >= 5) != (way == "directly") {
				t.Errorf("%d looks went directly", n)
			}
		})
	}
}

// The tables change under what is prepared: one run may fail by that, as by pgx.
func TestAPlanThatIsOutOfDate(t *testing.T) {
	for way, newCrowd := range crowds {
		t.Run(way, func(t *testing.T) {
			c := newCrowd(t, pgtest.URL(t), 1, nil)
			c.runs(t, "a")
			mustExec(t, c.s.own, "ALTER TABLE "+c.s.quoted()+".semel_meta ALTER swept_fence TYPE numeric")
			if _, err := Do(t.Context(), c.a, call("b"), c.pay("b", nil)); err != nil && code(err) != featureNotSupported {
				t.Error(err)
			}
			c.runs(t, "a", "b", "c")
		})
	}
}

func TestALookThatFindsNothingAtAll(t *testing.T) {
	for way, newCrowd := range crowds {
		t.Run(way, func(t *testing.T) {
			c := newCrowd(t, pgtest.URL(t), 1, nil)
			mustExec(t, c.s.own, "DELETE FROM "+c.s.quoted()+".semel_meta")
			if _, err := Do(t.Context(), c.a, call("a"), c.pay("a", nil)); !errors.Is(err, pgx.ErrNoRows) || !errors.Is(err, semel.ErrUnavailable) {
				t.Errorf("without semel_meta: %v", err)
			}
			c.want(t)
		})
	}
}

// What does not fit the statement is not sent.
func TestWhatCannotBeEncoded(t *testing.T) {
	for name, spoil := range map[string]func(d *direct, sql string){
		"another type": func(d *direct, sql string) { d.are[sql].ParamOIDs[4] = pgtype.Int4OID },
		"fewer":        func(d *direct, sql string) { d.are[sql].ParamOIDs = d.are[sql].ParamOIDs[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			c := newDirectCrowd(t, pgtest.URL(t), 1, nil)
			conn, err := c.app.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			spoil(directOf(conn.Conn()), c.s.txSQL.insert)
			conn.Release()
			if _, err := Do(t.Context(), c.a, call("a"), c.pay("a", nil)); err == nil || !strings.Contains(err.Error(), "parameter") {
				t.Errorf("it was sent: %v", err)
			}
			c.want(t)
		})
	}
}
