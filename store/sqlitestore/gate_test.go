package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

// The writer must not wait for a handler that could not begin.
func TestGate_HandlerCannotBegin_LeavesIt(t *testing.T) {
	t.Parallel()
	p := openShop(t, &Options{BusyTimeout: 20 * time.Millisecond})
	goesOn := func(value string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := Do(ctx, p.a, call(value), pay(value, nil)); err != nil {
			t.Errorf("the next handler: %v", err)
		}
		if _, err := p.s.Claim(ctx, proposal(value)); err != nil {
			t.Errorf("the writer: %v", err)
		}
	}

	release := holdLock(t, p.s)
	if _, err := Do(t.Context(), p.a, call("k"), pay("k", nil)); !errors.Is(err, ErrBusy) {
		t.Errorf("beside another's lock: %v", err)
	}
	release()
	goesOn("a")

	if err := p.s.gate.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error)
	go func() {
		_, err := Do(ctx, p.a, call("k"), pay("k", nil))
		got <- err
	}()
	until(t, true, " [select", "(*gate).enterHandler(")
	cancel()
	if err := <-got; !errors.Is(err, context.Canceled) {
		t.Errorf("at the gate: %v", err)
	}
	p.s.gate.leave()
	goesOn("b")
	p.want(t, "a", "b")
}

func TestClaim_HandlerHoldsLock_DuplicateDoesNotWait(t *testing.T) {
	t.Parallel()
	p := openShop(t, &Options{MaxTx: maxLookAfter * 9 / 10}) // a duplicate that waited would look after the end of the transaction
	complete(t, p.s, "done", "result")
	err := ErrTxTimeout
	for try := 0; try < 3 && errors.Is(err, ErrTxTimeout); try++ { // a busy machine may stop the handler for as long
		err = Once(t.Context(), p.a, call("k"), func(context.Context, *semel.Execution, *sql.Tx) error {
			replays(t, p.s, "done", "result") // which is nothing of the handler's
			return nil
		})
	}
	if err != nil {
		t.Error(err)
	}
}
