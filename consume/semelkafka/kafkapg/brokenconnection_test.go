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

// A message that breaks its connection each time, as by a statement that takes
// longer than a context of its own, or one that crashes the server process, is an
// attempt of that message: it is alone at last, and its end comes, and what does
// not wait for it does not.
func TestHandle_MessageBreaksItsConnection_EndsAfterMaxAttempts(t *testing.T) {
	const done, dup, again, waits, failed = driver.ReasonDone, driver.ReasonDuplicate, driver.ReasonError, driver.ReasonInProgress, driver.ReasonExhausted
	for name, breaks := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"the server results it": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return err
		},
		"a statement is too late": func(ctx context.Context, tx pgx.Tx) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			_, err := tx.Exec(ctx, "SELECT pg_sleep(10)")
			return err
		},
		"at COMMIT": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `CREATE FUNCTION pg_temp.springs() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
				CREATE TEMPORARY TABLE trap (n int) ON COMMIT DROP;
				CREATE CONSTRAINT TRIGGER sprung AFTER INSERT ON trap DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pg_temp.springs();
				INSERT INTO trap VALUES (1)`)
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
					return breaks(ctx, tx)
				}
				return nil
			}
		}
		batch := named("a/o", "b", "bad/p", "behind/p", "c/q")
		t.Run(name+", by keys", func(t *testing.T) {
			p := newShop(t)
			l := p.keyed(t, 3)
			l.handler = handler(p)
			first := done
			for attempt := 1; attempt <= 3; attempt++ {
				results := l.Handle(t.Context(), batch)
				wantReasons(t, results, first, first, again, waits, first)
				if first = dup; results[2].Attempt != attempt {
					t.Errorf("it is attempt %d, want %d", results[2].Attempt, attempt)
				}
			}
			// Its end can be kept only where it is not run again.
			wantReasons(t, l.Handle(t.Context(), batch), dup, dup, failed, waits, dup)
			wantReasons(t, l.Handle(t.Context(), batch), dup, dup, failed, done, dup)
			p.wantEffects(t, "a", "b", "c", "behind")
		})
		t.Run(name+", by offsets", func(t *testing.T) {
			p := newShop(t)
			l := p.offsets(3)
			l.handler = handler(p)
			wantReasons(t, l.Handle(t.Context(), batch), done, done, again, waits, waits)
			wantReasons(t, l.Handle(t.Context(), batch), dup, dup, again, waits, waits)
			wantReasons(t, l.Handle(t.Context(), batch), dup, dup, failed, waits, waits)
			if err := l.Pass(t.Context(), batch[2]); err != nil {
				t.Fatal(err)
			}
			wantReasons(t, l.Handle(t.Context(), batch[3:]), done, done)
			p.wantEffects(t, "a", "b", "behind", "c")
		})
	}
}
