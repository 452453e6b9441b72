package kafkapg

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// A message that breaks its connection each time, with a statement that takes
// longer than its context or one that crashes the server process, has made an
// attempt. It ends as a dead letter, and only messages that wait for it are
// delayed.
func TestHandle_MessageBreaksItsConnection_EndsAfterMaxAttempts(t *testing.T) {
	const done, duplicate, again, waits, failed = driver.ReasonDone, driver.ReasonDuplicate, driver.ReasonError, driver.ReasonInProgress, driver.ReasonExhausted
	for name, breakConnection := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"the server ends it": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return err
		},
		"a statement is too late": func(ctx context.Context, tx pgx.Tx) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			_, err := tx.Exec(ctx, "SELECT pg_sleep(2)")
			return err
		},
		"at COMMIT": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `CREATE FUNCTION pg_temp.terminate() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
				CREATE TEMPORARY TABLE deferred (n int) ON COMMIT DROP;
				CREATE CONSTRAINT TRIGGER terminate AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pg_temp.terminate();
				INSERT INTO deferred VALUES (1)`)
			return err
		},
		"rows are left open": func(ctx context.Context, tx pgx.Tx) error {
			rows, err := tx.Query(ctx, "SELECT generate_series(1, 100000)")
			if err == nil {
				rows.Next()
			}
			return err
		},
		"the handler hides it": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return nil
		},
	} {
		handler := func(p *shop) Handler {
			return func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
				if err := p.write(ctx, tx, ms); err != nil {
					return err
				}
				if slices.ContainsFunc(ms, func(m *consume.Message) bool { return string(m.Body) == "bad" }) {
					return breakConnection(ctx, tx)
				}
				return nil
			}
		}
		batch := named("a/o", "b", "bad/p", "later/p", "c/q")
		t.Run(name+", by keys", func(t *testing.T) {
			p := newShop(t)
			l := p.keyed(t, 3)
			l.handler = handler(p)
			first := done
			for attempt := 1; attempt <= 3; attempt++ {
				results := l.Handle(t.Context(), batch)
				wantReasons(t, results, first, first, again, waits, first)
				if first = duplicate; results[2].Attempt != attempt {
					t.Errorf("it is attempt %d, want %d", results[2].Attempt, attempt)
				}
			}
			// The failure can commit only in a transaction in which the handler
			// does not run.
			wantReasons(t, l.Handle(t.Context(), batch), duplicate, duplicate, failed, waits, duplicate)
			wantReasons(t, l.Handle(t.Context(), batch), duplicate, duplicate, failed, done, duplicate)
			p.wantEffects(t, "a", "b", "c", "later")
		})
		t.Run(name+", by offsets", func(t *testing.T) {
			p := newShop(t)
			l := p.offsets(3)
			l.handler = handler(p)
			wantReasons(t, l.Handle(t.Context(), batch), done, done, again, waits, waits)
			wantReasons(t, l.Handle(t.Context(), batch), duplicate, duplicate, again, waits, waits)
			wantReasons(t, l.Handle(t.Context(), batch), duplicate, duplicate, failed, waits, waits)
			if err := l.Pass(t.Context(), batch[2]); err != nil {
				t.Fatal(err)
			}
			wantReasons(t, l.Handle(t.Context(), batch[3:]), done, done)
			p.wantEffects(t, "a", "b", "later", "c")
		})
	}
}
