package pgstore

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// breaking are works that break their connection.
var breaking = map[string]func(ctx context.Context, tx pgx.Tx) error{
	"the server ends it": func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
		return err
	},
	"a statement is too late": func(ctx context.Context, tx pgx.Tx) error { // by a context of its own: pgx closes the connection
		ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		_, err := tx.Exec(ctx, "SELECT pg_sleep(2)")
		return err
	},
	"the server notices it late": func(ctx context.Context, tx pgx.Tx) error { // it goes on when pgx cancels the statement
		ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		_, err := tx.Exec(ctx, "DO $$ BEGIN PERFORM pg_sleep(0.5); EXCEPTION WHEN query_canceled THEN PERFORM pg_sleep(0.5); END $$")
		return err
	},
	"at COMMIT": func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `CREATE FUNCTION pg_temp.springs() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
			CREATE TEMPORARY TABLE trap (n int) ON COMMIT DROP;
			CREATE CONSTRAINT TRIGGER sprung AFTER INSERT ON trap DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pg_temp.springs();
			INSERT INTO trap VALUES (1)`)
		return err
	},
	"hidden": func(ctx context.Context, tx pgx.Tx) error {
		_, _ = tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
		return nil
	},
	"final": func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
		return semel.Final(err)
	},
}

// A call that breaks its connection each time is found like any failing call. It must
// not count as an outage, because then no call of the batch would ever finish. Its
// failed attempt is recorded.
func TestRunBatch_CallBreaksConnection_OthersSucceed(t *testing.T) {
	t.Parallel()
	for name, breaks := range breaking {
		t.Run(name, func(t *testing.T) {
			p := newShop(t, openNew(t, nil), nil)
			calls := poll("a", "b", "c", "bad", "d", "e", "bad", "f")
			for attempt := 1; attempt <= 2; attempt++ {
				ends := p.a.RunBatch(t.Context(), calls, func(ctx context.Context, newCalls []*PendingCall) error {
					tx, _ := TxFrom(ctx)
					var keys []string
					for _, f := range newCalls {
						keys = append(keys, f.Execution.Key())
					}
					if _, err := tx.Exec(ctx, "INSERT INTO "+p.table+" SELECT unnest($1::text[])", keys); err != nil {
						return err
					}
					if slices.Contains(keys, "bad") {
						return breaks(ctx, tx)
					}
					return nil
				})
				for i, e := range ends {
					if is := calls[i].Key == "bad"; is != (e.Err != nil) || !is && e.Replayed != (attempt > 1) {
						t.Errorf("%s: replayed %v, %v", calls[i].Key, e.Replayed, e.Err)
					}
				}
				if err := ends[3].Err; !errors.Is(err, semel.ErrUnavailable) { // and not a failure, which is not kept
					t.Errorf("it ended with %v", err)
				}
				p.want(t, "a", "b", "c", "d", "e", "f")
				if name == "hidden" { // as of a statement that failed
					continue
				}
				if r, err := p.record(t, "bad"); err != nil || r.State != store.Released || r.Attempt != attempt {
					t.Errorf("its record is %v, attempt %d, error %v; want attempt %d", r.State, r.Attempt, err, attempt)
				}
			}
		})
	}
}
