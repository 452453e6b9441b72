package pgkafka

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// While commits wait for a standby that is away, a watermark has not moved, also if an
// operator ends the wait, so that the server answers COMMIT.
func TestWatermark_StandbyAway_NotMoved(t *testing.T) {
	srv := pgtest.Start(t, "fsync=off", "synchronous_commit=on")
	for name, open := range map[string]func(url string) (*pgstore.Store, error){
		"opened": func(url string) (*pgstore.Store, error) {
			return pgstore.Open(t.Context(), url, &pgstore.Options{Schema: "opened"})
		},
		"lent": func(url string) (*pgstore.Store, error) {
			app, err := pgxpool.New(t.Context(), url)
			if err != nil {
				return nil, err
			}
			t.Cleanup(app.Close)
			return pgstore.New(t.Context(), app, &pgstore.Options{Schema: "lent"})
		},
	} {
		st, err := open(srv.URL())
		if err != nil {
			t.Fatal(err)
		}
		admin, err := pgxpool.New(t.Context(), srv.URL())
		if err != nil {
			t.Fatal(err)
		}
		p := &shop{st: st, app: admin, table: pgwire.DatabaseOf(st).Schema + ".payment"}
		p.exec(t, "CREATE TABLE "+p.table+" (key text)")
		w := own(t, st, 0)
		p.standby(t, "nobody")
		cancels, stop := context.WithCancel(t.Context())
		go func() {
			for cancels.Err() == nil {
				_, _ = admin.Exec(cancels, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
				<-time.After(10 * time.Millisecond)
			}
		}()
		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if err := w.Do(short, Span{First: 0, Next: 3}, p.offsets(0, 3)); err == nil || w.Next() != 0 {
			t.Errorf("%s: Do without the standby: %v, the watermark is at %d", name, err, w.Next())
		}
		if _, err := Own(short, st, orders, 0); err == nil {
			t.Errorf("%s: Own without the standby: no error", name)
		}
		cancel()
		stop()
		p.standby(t, "")
		if at := own(t, st, 0).Next(); int(at) != p.ask(t, "SELECT count(*) FROM "+p.table) {
			t.Errorf("%s: the watermark is at %d, and there are %d effects", name, at, p.ask(t, "SELECT count(*) FROM "+p.table))
		}
		admin.Close()
		_ = st.Close()
	}
}

// standby says whether commits wait.
func (p *shop) standby(t *testing.T, names string) {
	t.Helper()
	p.exec(t, "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'")
	p.exec(t, "SELECT pg_reload_conf()")
	for waits := names == ""; waits == (names == ""); {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := p.app.Exec(ctx, "SELECT pg_logical_emit_message(true, 'test', '')")
		waits = err != nil
		cancel()
	}
}

// A failover that lost commits sets the watermark back. Its owner must not go on from
// where it was, because the messages in between would have no effect.
func TestWatermark_FailoverLostCommits_OwnerFenced(t *testing.T) {
	p := newShop(t, nil)
	w := own(t, p.st, 0)
	if err := w.Do(t.Context(), Span{First: 0, Next: 10}, p.offsets(0, 10)); err != nil {
		t.Fatal(err)
	}
	p.exec(t, "UPDATE "+pgwire.DatabaseOf(p.st).Schema+".semel_watermark SET next_offset = 5")
	if err := w.Do(t.Context(), Span{First: 10, Next: 12}, p.offsets(10, 12)); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v, want ErrFenced", err)
	}
	if n := p.ask(t, "SELECT count(*) FROM "+p.table); n != 10 {
		t.Errorf("there are %d effects, want 10", n)
	}
	if w := own(t, p.st, 0); w.Next() != 5 {
		t.Errorf("the next owner begins at %d, want 5", w.Next())
	}
}

// However a handler ends the transaction that it was lent, Do returns an error, and the
// watermark does not move.
func TestWatermark_HandlerEndsTransaction_ErrEnded(t *testing.T) {
	p := newShop(t, nil)
	w := own(t, p.st, 0)
	for _, result := range []error{nil, errors.New("down")} {
		for name, end := range map[string]func(ctx context.Context, tx pgx.Tx){
			"a statement":       func(ctx context.Context, tx pgx.Tx) { _, _ = tx.Exec(ctx, "SELECT 1; COMMIT") },
			"on the connection": func(ctx context.Context, tx pgx.Tx) { _, _ = tx.Conn().Exec(ctx, "ROLLBACK") },
			"and leaves rows open": func(ctx context.Context, tx pgx.Tx) {
				_, _ = tx.Conn().Exec(ctx, "ROLLBACK")
				tx.Conn().QueryRow(ctx, "SELECT 1")
			},
			"another one": func(ctx context.Context, tx pgx.Tx) { _, _ = tx.Conn().PgConn().Exec(ctx, "ROLLBACK; BEGIN").ReadAll() },
		} {
			err := w.Do(t.Context(), Span{First: 0, Next: 1}, func(ctx context.Context, tx pgx.Tx) error {
				if err := p.offsets(0, 1)(ctx, tx); err != nil {
					t.Error(err)
				}
				end(ctx, tx)
				return result
			})
			if err == nil || result == nil && !errors.Is(err, ErrEnded) {
				t.Errorf("%s: got %v, want ErrEnded", name, err)
			}
			if n := p.ask(t, "SELECT count(*) FROM "+p.table); n != 0 || own(t, p.st, 0).Next() != 0 {
				t.Errorf("%s: %d effects", name, n)
			}
			w = own(t, p.st, 0)
		}
	}
	if err := w.Do(t.Context(), Span{First: 0, Next: 1}, p.offsets(0, 1)); err != nil {
		t.Error(err)
	}
}

// A COMMIT that the server refuses is ErrBroken, whatever the code of its error is, so
// that the consumer looks for the message that is the cause.
func TestWatermark_CommitRefused_ErrBroken(t *testing.T) {
	p := newShop(t, nil)
	w := own(t, p.st, 0)
	schema := pgwire.DatabaseOf(p.st).Schema
	for offset, code := range []string{"23503", "53400", "55P03", "42501", "XX000", "40001", "P0001"} {
		p.exec(t, "CREATE FUNCTION "+schema+".raise"+code+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'raised' USING ERRCODE = '"+code+"'; END $$")
		p.exec(t, "CREATE CONSTRAINT TRIGGER raise"+code+" AFTER INSERT ON "+p.table+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.key = '"+code+"') EXECUTE FUNCTION "+schema+".raise"+code+"()")
		err := w.Do(t.Context(), Span{First: 0, Next: int64(offset + 1)}, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ($1)", code)
			return err
		})
		if !errors.Is(err, ErrBroken) {
			t.Errorf("%s: got %v, want ErrBroken", code, err)
		}
	}
}

// A setting that a handler makes for its session does not hold for the next batch.
func TestWatermark_HandlerChangesSession_NextBatchHasNewConnection(t *testing.T) {
	p := newShop(t, nil)
	w := own(t, p.st, 0)
	for n, set := range []string{"SET search_path = nowhere", "SELECT 1"} {
		err := w.Do(t.Context(), Span{First: int64(n), Next: int64(n + 1)}, func(ctx context.Context, tx pgx.Tx) error {
			var path string
			if err := tx.QueryRow(ctx, "SHOW search_path").Scan(&path); err != nil || path == "nowhere" {
				t.Errorf("batch %d: the search path is %s, %v", n, path, err)
			}
			_, err := tx.Exec(ctx, set)
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
