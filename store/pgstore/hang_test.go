package pgstore

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// A connection that hangs is given up together with its renewal, and the driver closes
// it later. The next renewal, or a renewal of another Guard, does not wait for that.
func TestRenew_ConnectionHangs_OthersContinue(t *testing.T) {
	t.Parallel()
	for name, connected := range map[string]bool{"as it connects": false, "once it is connected": true} {
		t.Run(name, func(t *testing.T) {
			first := openNew(t, nil)
			h, through := newHangingProxy(t)
			s := openAt(t, through, &Options{Schema: first.options.Schema})
			r := claim(t, s, "k")
			renew := func(ctx context.Context) error {
				_, err := s.Renew(ctx, []store.Lease{r.Lease()}, time.Hour)
				return err
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if connected {
				if err := renew(ctx); err != nil {
					t.Fatal(err)
				}
			}
			h.next.Store(true)
			hangs, end := context.WithCancel(ctx)
			gaveUp := make(chan error, 1)
			go func() { gaveUp <- renew(hangs) }()
			waitFor(t, "a connection hangs", func() bool { return h.hung.Load() == 1 })
			if end(); <-gaveUp == nil {
				t.Fatal("the renewal does not hang: this test shows nothing")
			}
			if err := renew(ctx); err != nil {
				t.Errorf("the next renewal: %v", err)
			}
			if is := get(t, first, "k"); is.Until.Sub(r.Until) < 50*time.Minute {
				t.Errorf("the lease ends at %v", is.Until)
			}
		})
	}
}

// One connection that hangs does not cost an outcome: a settlement goes again, on
// another.
func TestSettle_ConnectionHangs_IsStored(t *testing.T) {
	t.Parallel()
	first := openNew(t, nil)
	h, through := newHangingProxy(t)
	s := openAt(t, through, &Options{Schema: first.options.Schema, settleTry: time.Second})
	g, err := semel.New(s, &semel.Options{StoreTimeout: 5 * time.Minute, SettleTimeout: 20 * time.Second}) // so that the store gives up first
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.Run(t.Context(), call("k"), func(context.Context, *semel.Execution) (store.Outcome, error) {
		h.next.Store(true)
		return store.Outcome{Body: []byte("one")}, nil
	})
	if err != nil || h.hung.Load() != 1 {
		t.Errorf("%d connections hung, and the run ended by %v", h.hung.Load(), err)
	}
}

// A listener that has lost its connection, and gets no answer on the next, takes
// another.
func TestListener_ConnectionHangs_Reconnects(t *testing.T) {
	t.Parallel()
	for name, connected := range map[string]bool{"as it connects": false, "once it is connected": true} {
		t.Run(name, func(t *testing.T) {
			first := openNew(t, nil)
			h, through := newHangingProxy(t)
			cfg, err := pgxpool.ParseConfig(through)
			if err != nil {
				t.Fatal(err)
			}
			var armed atomic.Bool
			hang := func(is *pgx.ConnConfig) {
				if is.RuntimeParams["application_name"] == first.options.channel() && armed.CompareAndSwap(true, false) {
					h.next.Store(true)
				}
			}
			if connected {
				cfg.AfterConnect = func(_ context.Context, conn *pgx.Conn) error { hang(conn.Config()); return nil }
			} else {
				cfg.BeforeConnect = func(_ context.Context, to *pgx.ConnConfig) error { hang(to); return nil }
			}
			s, err := open(t.Context(), cfg, nil, &Options{Schema: first.options.Schema, Notify: true, echo: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			armed.Store(true)
			endListeners(t, first)
			waitFor(t, "a connection hangs", func() bool { return h.hung.Load() == 1 })
			start := time.Now()
			waitFor(t, "it listens again", func() bool {
				l, err := s.listener.Join(table.ID(testKey("k")))
				if err == nil {
					s.listener.Leave(l)
				}
				return err == nil
			})
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("it listens again after %v", took)
			}
			l := join(t, s, "k")
			complete(t, first, "k", "result")
			s.notifyEnd(table.ID(testKey("k")))
			wantNotified(t, l, "an end after that")
		})
	}
}
