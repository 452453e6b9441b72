package pgkafka

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// limit is the StoreTimeout of the tests below. A machine that is busy adds to it, so they
// look for a call that has no end; test/outage measures how long calls take. A request that
// is to succeed is repeated, because on such a machine it may take longer than limit.
const limit = 500 * time.Millisecond

// frozenShop is a shop, and a store in its schema whose connections freeze when a text is
// sent: nothing comes through any more, and nobody is told.
func frozenShop(t *testing.T) (*shop, *pgstore.Store, *cuttest.Cutter) {
	t.Helper()
	p := newShop(t, nil)
	p.exec(t, "CREATE UNIQUE INDEX ON "+p.table+" (key)")
	cut, url := cuttest.New(t, pgtest.URL(t), false)
	cut.Freeze = true
	quoted := pgwire.DatabaseOf(p.st).Schema
	schema := strings.ReplaceAll(quoted[1:len(quoted)-1], `""`, `"`)
	st, err := pgstore.Open(t.Context(), url, &pgstore.Options{Schema: schema, StoreTimeout: limit, MaxIdleTx: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return p, st, cut
}

// endsInTime returns the error of a call that nobody cancels.
func endsInTime(t *testing.T, call func(ctx context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("the call has no end, although each request to the server has a limit")
		return nil
	}
}

// untilDone repeats a call that is to succeed.
func untilDone(t *testing.T, call func(ctx context.Context) error) {
	t.Helper()
	err := endsInTime(t, func(ctx context.Context) error {
		for {
			err := call(ctx)
			if err == nil || !pgwire.Sleep(ctx, 20*time.Millisecond) {
				return err
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ownSoon is own with a store whose StoreTimeout is short.
func ownSoon(t *testing.T, st *pgstore.Store) (w *Watermark) {
	t.Helper()
	untilDone(t, func(ctx context.Context) (err error) {
		w, err = Own(ctx, st, orders, 0)
		return err
	})
	return w
}

// untilCut repeats a call until a request of it has met the Cutter: an earlier request may
// have taken longer than limit. It returns the error of the last call.
func untilCut(t *testing.T, cut *cuttest.Cutter, call func(ctx context.Context) error) (err error) {
	t.Helper()
	for range 20 {
		if err = endsInTime(t, call); cut.Cuts.Load() > 0 || err == nil {
			break
		}
	}
	if cut.Cuts.Load() == 0 {
		t.Error("nothing froze, so the test shows nothing")
	}
	return err
}

// The server gives no answer to one of the requests of Do, or a statement of the handler has
// none. Do ends, and says nothing of success. When the server answers again, the partition
// goes on, although the transaction that was cut off has locked rows, and each offset has
// one effect.
func TestWatermark_NoAnswer_DoEndsAndPartitionGoesOn(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for name, c := range map[string]struct {
		text string
		work func(ctx context.Context, tx pgx.Tx) error // of the handler, after its writes
	}{
		"to BEGIN":                     {"begin isolation", nil},
		"to the change":                {"SET next_offset", nil},
		"to COMMIT":                    {"commit\x00", nil},
		"to ROLLBACK":                  {"rollback\x00", func(context.Context, pgx.Tx) error { return down }},
		"to the check of a connection": {"pg_current_xact_id_if_assigned", func(_ context.Context, tx pgx.Tx) error { _ = tx.Conn(); return nil }},
		"to the handler": {"SELECT 'silence'", func(ctx context.Context, tx pgx.Tx) error {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			_, err := tx.Exec(ctx, "SELECT 'silence'")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, st, cut := frozenShop(t)
			w := ownSoon(t, st)
			cut.At(c.text)
			err := untilCut(t, cut, func(ctx context.Context) error {
				return w.Do(ctx, Span{First: 0, Next: 3}, func(ctx context.Context, tx pgx.Tx) error {
					err := p.offsets(0, 3)(ctx, tx)
					if err == nil && c.work != nil {
						err = c.work(ctx, tx)
					}
					return err
				})
			})
			if err == nil || w.Next() != 0 {
				t.Errorf("Do returned %v, and the watermark is at %d; want an error, and 0", err, w.Next())
			}
			t.Logf("Do returned: %v", err)
			cut.At("\x00nothing")
			untilDone(t, func(ctx context.Context) error {
				w, err := Own(ctx, st, orders, 0)
				if err == nil && w.Next() != 3 {
					err = w.Do(ctx, Span{First: 0, Next: 3}, p.offsets(0, 3))
				}
				return err
			})
			p.want(t, "000", "001", "002")
		})
	}
}

// The server gives no answer to a request outside of Do.
func TestPgkafka_NoAnswer_EachCallEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		call func(ctx context.Context, st *pgstore.Store, w *Watermark, n *CrashMarker) error
	}{
		"Own": {"semel_watermark AS w", func(ctx context.Context, st *pgstore.Store, _ *Watermark, _ *CrashMarker) error {
			_, err := Own(ctx, st, orders, 0)
			return err
		}},
		"Move": {"SET next_offset", func(ctx context.Context, st *pgstore.Store, w *Watermark, _ *CrashMarker) error {
			tx, err := pgwire.DatabaseOf(st).App.Begin(ctx)
			if err != nil {
				t.Error(err)
				return nil
			}
			defer func() { _ = tx.Rollback(ctx) }()
			return w.Move(ctx, tx, Span{First: 0, Next: 1})
		}},
		"Forget": {"DELETE FROM", func(ctx context.Context, st *pgstore.Store, _ *Watermark, _ *CrashMarker) error {
			return Forget(ctx, st, orders.Consumer, orders.Topic)
		}},
		"Begin of a crash marker": {"semel_crash_marker AS n", func(ctx context.Context, _ *pgstore.Store, _ *Watermark, n *CrashMarker) error {
			_, err := n.Begin(ctx, 0)
			return err
		}},
		"Try of a crash marker": {"SET open_tries", func(ctx context.Context, _ *pgstore.Store, _ *Watermark, n *CrashMarker) error {
			return n.Try(ctx, 0)
		}},
		"the question what became of COMMIT": {"FOR UPDATE", func(ctx context.Context, _ *pgstore.Store, w *Watermark, _ *CrashMarker) error {
			if moved, known := w.hasMoved(ctx, 1); moved || known {
				return nil
			}
			return context.DeadlineExceeded
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, st, cut := frozenShop(t)
			w, n := ownSoon(t, st), NewCrashMarker(st, orders)
			untilDone(t, func(ctx context.Context) error {
				_, err := n.Begin(ctx, 0)
				return err
			})
			cut.At(c.text)
			if err := untilCut(t, cut, func(ctx context.Context) error { return c.call(ctx, st, w, n) }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want context.DeadlineExceeded", err)
			}
		})
	}
}

// A row that another transaction has locked is no server that gives no answer, whichever of
// the two limits is shorter.
func TestOwn_RowLocked_ErrBusy(t *testing.T) {
	t.Parallel()
	for _, o := range []pgstore.Options{{StoreTimeout: 4 * time.Second}, {LockTimeout: time.Second}} {
		p := newShop(t, &o)
		w := own(t, p.st, 0)
		if err := w.Move(t.Context(), p.begin(t), Span{First: 0, Next: 1}); err != nil {
			t.Fatal(err)
		}
		_, err := Own(t.Context(), p.st, orders, 0)
		for range 4 { // on a busy machine the server's answer may come after the limit
			if !errors.Is(err, pgstore.ErrBusy) {
				_, err = Own(t.Context(), p.st, orders, 0)
			}
		}
		if !errors.Is(err, pgstore.ErrBusy) {
			t.Errorf("%+v: got %v, want ErrBusy", o, err)
		}
	}
}
