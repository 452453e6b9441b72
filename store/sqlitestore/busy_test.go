package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// A Guard with UnprotectedOnOutage must not run its handler while another transaction, which
// may be a call of the same key, holds the file. The time of the Guard ends before BusyTimeout.
func TestUnprotected_FileLocked_DoesNotRun(t *testing.T) {
	t.Parallel()
	p := openShop(t, &Options{BusyTimeout: time.Hour})
	claim(t, p.s, "connects")
	g := leased(t, p.s, &semel.Options{UnprotectedOnOutage: true, StoreTimeout: 2 * time.Second})
	runs := 0
	run := func(key string) error {
		_, err := g.Run(t.Context(), call(key), func(context.Context, *semel.Execution) (store.Outcome, error) {
			runs++
			return store.Outcome{}, nil
		})
		return err
	}
	busy := func(holder, key string) {
		t.Helper()
		err := run(key)
		if !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, ErrBusy) || !errors.Is(err, store.ErrBusy) {
			t.Errorf("beside %s: %v; want ErrUnavailable around ErrBusy", holder, err)
		}
	}
	release := holdLock(t, p.s)
	busy("another process", "given back") // in the background, so that no other call may use the key
	release()
	err := Once(t.Context(), p.a, call("k"), func(context.Context, *semel.Execution, *sql.Tx) error {
		busy("a handler of the same call", "k")
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := run("k"); err != nil || runs != 0 {
		t.Errorf("after the handler: %d runs, error %v; want a replay", runs, err)
	}
	if err := p.s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := run("k"); err != nil || runs != 1 {
		t.Errorf("without a store: %d runs, error %v; want 1", runs, err)
	}
}
