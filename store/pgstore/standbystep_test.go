package pgstore

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// A step commits in a transaction of its own, on connections whose warnings the store does
// not see. While commits wait for a standby, neither the step nor its replay is done.
func TestStandbyAway_StepInTransaction_NotAcknowledged(t *testing.T) {
	t.Parallel()
	srv := newStandbyServer(t)
	s, err := New(t.Context(), pool(t, srv.URL()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p := newShop(t, s, nil)
	err = semel.Once(t.Context(), leased(t, p.s, nil), call("k"), func(ctx context.Context, x *semel.Execution) error {
		srv.standby(t, "nobody")
		cancels, stop := context.WithCancel(ctx)
		defer stop()
		go srv.cancelWaits(cancels)
		for range 2 {
			short, cancel := context.WithTimeout(ctx, time.Second)
			if _, err := Do(short, p.a, x.Step("pay"), p.pay("k", nil)); err == nil {
				t.Error("the step is done without the standby")
			}
			cancel()
		}
		stop()
		srv.standby(t, "")
		_, err := Do(ctx, p.a, x.Step("pay"), p.pay("k", nil))
		return err
	})
	if err != nil {
		t.Errorf("with the standby: %v", err)
	}
	p.want(t, "k")
}

// A handler of the caller's own notices is called all the same.
func TestOpen_OnNotice_IsCalled(t *testing.T) {
	cfg := pool(t, pgtest.URL(t)).Config()
	notices := make(chan string, 1)
	cfg.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notices <- n.Message }
	app, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(app.Close)
	s, err := New(t.Context(), app, &Options{Schema: newSchema(t, pgtest.URL(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	mustExec(t, s.ownPool, "DO $$ BEGIN RAISE WARNING 'heard'; END $$")
	if got := <-notices; got != "heard" {
		t.Errorf("got %q", got)
	}
}
