package pgkafka

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store/pgstore"
)

// A handler leaves its transaction idle until the server ends it. Do says so, with the name
// of the setting and its value, and commits nothing. A shorter pause is no fault.
func TestWatermark_HandlerIdle_ErrIdle(t *testing.T) {
	t.Parallel()
	p := newShop(t, &pgstore.Options{MaxIdleTx: 2 * time.Second})
	w := own(t, p.st, 0)
	err := w.Do(t.Context(), Span{First: 0, Next: 3}, func(ctx context.Context, tx pgx.Tx) error {
		var pid int
		if err := tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			return err
		}
		err := p.offsets(0, 3)(ctx, tx)
		waitFor(t, "the server ends an idle transaction", func() bool {
			n := 0
			err := p.app.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid).Scan(&n)
			return err != nil || n == 0
		})
		return err
	})
	if !errors.Is(err, ErrIdle) || !strings.Contains(err.Error(), "pgstore.Options.MaxIdleTx, 2s") {
		t.Errorf("got %v, want ErrIdle with MaxIdleTx and its value", err)
	}
	if p.want(t); w.Next() != 0 {
		t.Errorf("the watermark is at %d, want 0", w.Next())
	}
	if err := w.Do(t.Context(), Span{First: 0, Next: 3}, p.offsets(0, 3)); err != nil {
		t.Error(err)
	}
	p.want(t, "000", "001", "002")
}

// A handler works for longer than MaxIdleTx, on the connection itself, and leaves it idle for
// a short time only. The look at the connection after that leaves it usable.
func TestWatermark_HandlerSlowOnConnection_Commits(t *testing.T) {
	t.Parallel()
	p := newShop(t, &pgstore.Options{MaxIdleTx: 2 * time.Second})
	w := own(t, p.st, 0)
	err := w.Do(t.Context(), Span{First: 0, Next: 3}, func(ctx context.Context, tx pgx.Tx) error {
		conn := tx.Conn()
		for began := time.Now(); time.Since(began) < 2500*time.Millisecond; {
			if _, err := conn.Exec(ctx, "SELECT pg_sleep(0.5)"); err != nil {
				return err
			}
		}
		return p.offsets(0, 3)(ctx, tx)
	})
	if err != nil {
		t.Error(err)
	}
	p.want(t, "000", "001", "002")
}
