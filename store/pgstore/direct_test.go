package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

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
		o   store.Outcome
		err error
	}
	full := store.Outcome{Code: 201, Codec: "json", Body: []byte(`{"id":7}`), Header: []store.Header{{Name: "Location", Value: "/7"}, {Name: "X", Value: ""}}}
	large := store.Outcome{Body: []byte(strings.Repeat("0123456789", 400_000))}
	ends := map[string]end{
		"nothing": {}, "full": {o: full}, "large": {o: large}, "a negative code": {o: store.Outcome{Code: -1 << 40}},
		"no text but zeros": {o: store.Outcome{Body: make([]byte, 300)}},
		"a failure":         {err: &semel.Failure{Code: "declined", Message: "no funds"}},
		"released":          {err: errors.New("oops")}, "no effect": {err: semel.NoEffect(errors.New("refused"))},
	}
	calls := map[string]func(key string) semel.Call{
		"plain": call,
		"full": func(key string) semel.Call {
			return semel.Call{Operation: "zahlen ü", Tenant: "tenant \x00 '\"", Key: "\x00\xff" + key, Payload: semel.Bytes([]byte("p"))}
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
						res, err := c.a.Run(t.Context(), is("k"), func(context.Context, *semel.Execution) (store.Outcome, error) { return end.o, end.err })
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

// Of the round trips of a new connection, one is for the preparing.
func TestThePreparingIsOneRoundTrip(t *testing.T) {
	var trips atomic.Int64
	c := newCrowded(t, pgtest.URL(t), 1, func(cfg *pgxpool.Config) {
		cfg.ConnConfig.Tracer = nil
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &counted{Conn: conn, trips: &trips}, err
		}
	})
	var took []int64
	for i := range 4 {
		before := trips.Load()
		c.holding(t, itoa(i)).want(t, itoa(i))
		took = append(took, trips.Load()-before)
	}
	if took[1] != 4 || took[2] != 3 || took[3] != 3 {
		t.Errorf("runs took %d round trips", took)
	}
}

func TestOnlySoManyStatementsArePrepared(t *testing.T) {
	c := newDirectCrowd(t, pgtest.URL(t), 1, nil)
	for i := range maxPrepared {
		if i > 1 && i < maxPrepared-4 {
			continue // it takes long; the connection has them, says the test
		}
		s, err := New(t.Context(), c.app, &Options{Schema: newSchema(t, pgtest.URL(t))})
		if err != nil {
			t.Fatal(err)
		}
		p := newShop(t, s, nil)
		for i := range 3 {
			if _, err := Do(t.Context(), p.a, call(itoa(i)), p.pay(itoa(i), nil)); err != nil {
				t.Error(err)
			}
		}
		p.want(t, "0", "1", "2")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		conn, err := c.app.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d := directOf(conn.Conn())
		for n := len(d.are); i == 1 && n < maxPrepared-4; n++ {
			d.are[itoa(n)] = nil
		}
		if len(d.are) > maxPrepared || d.off {
			t.Errorf("%d statements, off: %v", len(d.are), d.off)
		}
		conn.Release()
	}
	c.runs(t, "a", "b")
}
