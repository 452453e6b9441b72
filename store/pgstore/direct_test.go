package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// directly is how often the only connection of a crowd has carried out a prepared
// statement of its store; -1: it is not prepared.
func (c *crowded) directly(t *testing.T, sql string) int {
	t.Helper()
	return ask[int](t, c.app, "SELECT coalesce(max(generic_plans + custom_plans), -1) FROM pg_prepared_statements WHERE name = '"+preparedName(sql)+"'")
}

// runs runs keys, each once, and wants their effects.
func (c *crowded) runs(t *testing.T, keys ...string) {
	t.Helper()
	for _, key := range keys {
		for range 2 {
			if got, err := Do(t.Context(), c.a, call(key), c.pay(key, nil)); err != nil || got != "receipt of "+key {
				t.Errorf("run of %s: %q, %v", key, got, err)
			}
		}
	}
	c.want(t, slices.Sorted(slices.Values(keys))...)
}

func TestTheStatementsOfARunGoDirectly(t *testing.T) {
	c := newDirectCrowd(t, pgtest.URL(t), 1, nil)
	looks, inserts := c.directly(t, c.s.txSQL.read), c.directly(t, c.s.txSQL.insert)
	c.runs(t, "a", "b", "c") // a duplicate has one look
	if n := c.directly(t, c.s.txSQL.read) - looks; n != 6 {
		t.Errorf("%d of 6 looks went directly", n)
	}
	if n := c.directly(t, c.s.txSQL.insert) - inserts; n != 3 {
		t.Errorf("%d of 3 records went directly", n)
	}
}

func TestPgxSendsWhatMustNotGoDirectly(t *testing.T) {
	for name, set := range map[string]func(*pgxpool.Config){
		"for a tracer": func(*pgxpool.Config) {}, // it has one
		"as described each time": func(cfg *pgxpool.Config) {
			cfg.ConnConfig.Tracer, cfg.ConnConfig.DefaultQueryExecMode = nil, pgx.QueryExecModeDescribeExec
		},
		"as described before": func(cfg *pgxpool.Config) {
			cfg.ConnConfig.Tracer, cfg.ConnConfig.DefaultQueryExecMode = nil, pgx.QueryExecModeCacheDescribe
		},
		"without a description": func(cfg *pgxpool.Config) {
			cfg.ConnConfig.Tracer, cfg.ConnConfig.DefaultQueryExecMode = nil, pgx.QueryExecModeExec
		},
		"as text": func(cfg *pgxpool.Config) {
			cfg.ConnConfig.Tracer, cfg.ConnConfig.DefaultQueryExecMode = nil, pgx.QueryExecModeSimpleProtocol
		},
		"for a hook that sets how": func(cfg *pgxpool.Config) {
			cfg.ConnConfig.Tracer = nil
			cfg.BeforeConnect = func(_ context.Context, cfg *pgx.ConnConfig) error {
				cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCrowded(t, pgtest.URL(t), 1, set)
			c.runs(t, "a", "b", "c")
			if n := c.directly(t, c.s.txSQL.read); n >= 0 {
				t.Errorf("%d looks went directly", n)
			}
		})
	}
}

// Whatever there is to keep, the record is the same whichever way it went.
func TestARecordIsTheSameWhicheverWayItWent(t *testing.T) {
	type end struct {
		o   semel.Outcome
		err error
	}
	full := semel.Outcome{Code: 201, Codec: "json", Body: []byte(`{"id":7}`), Header: []store.Header{{Name: "Location", Value: "/7"}, {Name: "X", Value: ""}}}
	large := semel.Outcome{Body: []byte(strings.Repeat("0123456789", 400_000))}
	ends := map[string]end{
		"nothing": {}, "full": {o: full}, "large": {o: large}, "a negative code": {o: semel.Outcome{Code: -1 << 40}},
		"no text but zeros": {o: semel.Outcome{Body: make([]byte, 300)}},
		"a failure":         {err: &semel.Failure{Code: "declined", Message: "no funds"}},
		"released":          {err: errors.New("oops")}, "no effect": {err: semel.NoEffect(errors.New("refused"))},
	}
	calls := map[string]func(key string) semel.Call{
		"plain": call,
		"full": func(key string) semel.Call {
			return semel.NewCall(semel.Operation("zahlen ü").For("tenant \x00 '\""), "\x00\xff"+key, semel.Bytes([]byte("p")))
		},
	}
	for name, is := range calls {
		for what, end := range ends {
			t.Run(name+" "+what, func(t *testing.T) {
				left := map[string]string{}
				for way, newCrowd := range crowds {
					c := newCrowd(t, pgtest.URL(t), 1, nil)
					mustExec(t, c.app, "DELETE FROM "+c.s.quoted()+".semel_record")
					said := ""
					for range 2 { // the second finds what the first has left
						res, err := c.a.Run(t.Context(), is("k"), func(context.Context, *semel.Execution) (semel.Outcome, error) { return end.o, end.err })
						said += fmt.Sprintf("%v %v %v %x; ", res.Replayed, err, res.Outcome.Code, res.Outcome.Body[:min(20, len(res.Outcome.Body))])
					}
					const most = `(to_jsonb(r) - '{owner,holder,fence,created,updated,until,expires,body}'::text[])::text || md5(coalesce(body, '')) || (body IS NULL)
						|| ' for ' || CASE WHEN until > 0 THEN until - updated ELSE 0 END || ' kept for ' || CASE WHEN expires > 0 THEN expires - updated ELSE 0 END
						|| CASE WHEN updated BETWEEN created AND created + 60000000 AND fence >= created THEN '' ELSE ' at odd times' END`
					said += ask[string](t, c.app, "SELECT coalesce(string_agg("+most+", ','), 'no record') FROM "+c.s.quoted()+".semel_record r")
					left[said] += way + "; "
				}
				if len(left) != 1 {
					t.Errorf("it is left in %d ways: %q", len(left), left)
				}
			})
		}
	}
}

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

// Stores that use a pool at the same time, or one after the other, do not mix up
// what they have prepared.
func TestStoresShareAConnection(t *testing.T) {
	c := newDirectCrowd(t, pgtest.URL(t), 1, nil)
	for range 2 {
		s, err := New(t.Context(), c.app, &Options{Schema: newSchema(t, pgtest.URL(t))})
		if err != nil {
			t.Fatal(err)
		}
		p := newShop(t, s, nil)
		for i := range 4 {
			key := itoa(i)
			for _, p := range []*shop{p, c.shop} {
				if got, err := Do(t.Context(), p.a, call(key), p.pay(key, nil)); err != nil || got != "receipt of "+key {
					t.Errorf("%q, %v", got, err)
				}
			}
		}
		p.want(t, "0", "1", "2", "3")
		if n := c.directly(t, s.txSQL.read); n < 3 {
			t.Errorf("%d looks of the other store went directly", n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	c.want(t, "0", "1", "2", "3")
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
