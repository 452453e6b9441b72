package pgstore

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
)

// A setting that a handler makes for its session does not hold for the keys that come later
// on its connection. A setting for its transaction costs no connection.
func TestAtomic_HandlerChangesSession_NextKeyHasNewConnection(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	run := func(form, key, set string) (pid int32, readOnly string) {
		handler := func(ctx context.Context, tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, "SELECT pg_backend_pid(), current_setting('default_transaction_read_only')").Scan(&pid, &readOnly); err != nil || set == "" {
				return err
			}
			_, err := tx.Exec(ctx, set)
			return err
		}
		var err error
		if form == "batch" {
			err = p.a.RunBatch(t.Context(), poll(key), func(ctx context.Context, _ []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				return handler(ctx, tx)
			})[0].Err
		} else {
			err = Once(t.Context(), p.a, call(key), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error { return handler(ctx, tx) })
		}
		if err != nil {
			t.Errorf("%s, %q: %v", form, set, err)
		}
		return pid, readOnly
	}
	for set, outlives := range map[string]bool{
		"SET default_transaction_read_only = on": true, "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY": true,
		"SELECT set_config('default_transaction_read_only', 'on', false)": true, "RESET ALL": true,
		"SET LOCAL default_transaction_read_only = on": false, "SELECT set_config('default_transaction_read_only', 'on', true)": false,
		"SET CONSTRAINTS ALL IMMEDIATE": false, "SET TRANSACTION ISOLATION LEVEL READ COMMITTED": false,
	} {
		for _, form := range []string{"Once", "batch"} {
			p.s.appPool.Reset()
			first, _ := run(form, form+", first: "+set, set)
			next, readOnly := run(form, form+", next: "+set, "")
			if readOnly != "off" || (first != next) != outlives {
				t.Errorf("%s, %q: the next key has read-only %s, and a new connection is %v", form, set, readOnly, first != next)
			}
		}
	}
}

// The store's own statements, which pass through the transactions of joined calls, change no
// setting of the session.
func TestAtomic_CallsJoinEachOther_ConnectionStays(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, nil), nil)
	var pids [2]int32
	for n := range pids {
		key := string(rune('a' + n))
		if err := Once(t.Context(), p.a, call(key), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pids[n]); err != nil {
				return err
			}
			return Once(ctx, p.a, call(key+" joined"), func(ctx context.Context, _ *semel.Execution, _ pgx.Tx) error {
				return Once(ctx, p.a, call(key+" joined twice"), func(context.Context, *semel.Execution, pgx.Tx) error { return nil })
			})
		}); err != nil {
			t.Error(err)
		}
	}
	if pids[0] != pids[1] {
		t.Error("the second call has a new connection")
	}
}
