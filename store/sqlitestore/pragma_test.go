package sqlitestore

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

// A handler leaves a setting on its connection with which nothing can be written any more.
// Later calls, without a transaction too, and other processes can write.
func TestAtomic_HandlerSetsPragma_LaterCallsWrite(t *testing.T) {
	for _, set := range []string{"PRAGMA query_only = 1", "PRAGMA locking_mode = EXCLUSIVE"} {
		t.Run(set, func(t *testing.T) {
			p := openShop(t, &Options{BusyTimeout: 200 * time.Millisecond})
			_, _ = Do(t.Context(), p.a, call("first"), func(ctx context.Context, _ *semel.Execution, tx *sql.Tx) (string, error) {
				_, err := tx.ExecContext(ctx, set)
				return "", err
			})
			if _, err := Do(t.Context(), p.a, call("second"), pay("second", nil)); err != nil {
				t.Error("Atomic:", err)
			}
			g, err := semel.New(p.s, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := semel.Once(t.Context(), g, call("third"), func(context.Context, *semel.Execution) error { return nil }); err != nil {
				t.Error("a Guard:", err)
			}
			other, err := Open(t.Context(), p.s.path, &Options{BusyTimeout: 200 * time.Millisecond})
			if err != nil {
				t.Fatal("another process:", err)
			}
			if err := other.Close(); err != nil {
				t.Error(err)
			}
			p.want(t, "second")
		})
	}
}
