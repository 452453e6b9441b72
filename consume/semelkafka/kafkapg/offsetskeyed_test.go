package kafkapg

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
)

// A handler by offsets runs keyed calls in its transaction. The store's own statements change no
// setting of the session, so the connection stays.
func TestOffsets_KeyedCallInside_ConnectionStays(t *testing.T) {
	var a *pgstore.Atomic
	var pids []uint32
	l := openOffsets(t, func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		pids = append(pids, tx.Conn().PgConn().PID())
		for _, key := range []string{"k", "k2"} {
			c := semel.Call{Operation: "o", Tenant: semel.Shared, Key: key, Payload: semel.NoPayload()}
			if _, err := a.In(tx).Run(ctx, c, func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{}, nil }); err != nil {
				return err
			}
		}
		return nil
	})
	var err error
	if a, err = pgstore.NewAtomic(l.store, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Own(t.Context(), orders, 0); err != nil {
		t.Fatal(err)
	}
	for n := range int64(3) {
		for _, r := range l.Handle(t.Context(), items(n, n+1)) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		}
	}
	if len(pids) != 3 || pids[0] != pids[1] || pids[1] != pids[2] {
		t.Errorf("the connections have the processes %v", pids)
	}
}
