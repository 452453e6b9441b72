package orders

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
)

// An order that another process holds is placed when that process's lease has expired.
func TestPlace_OrderHeldByDeadProcess_PlacedAfterItsLease(t *testing.T) {
	open := func() *sagas {
		o := Options{File: filepath.Join(t.TempDir(), "orders.db"), Lease: time.Minute, Semel: true}
		app, err := OpenApp(t.Context(), &o, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { app.Close() })
		return app.(*sagas)
	}
	order := &Order{ID: "order-1", Cents: 100}
	key := saga.Key(name, semel.Shared, order.ID)
	other, app := open(), open()
	if err := other.Place(t.Context(), order); err != nil { // for the fingerprint
		t.Fatal(err)
	}
	f, err := other.store.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	st := app.store
	_, err = st.Claim(t.Context(), store.Proposal{
		Key: key, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Fingerprint: f.Record.Fingerprint,
		Lease: 300 * time.Millisecond, Keep: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := app.Place(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	answers, err := app.Answers(t.Context())
	if _, placed := answers[order.ID]; err != nil || !placed {
		t.Errorf("answers %v, %v", answers, err)
	}
	due, _, err := st.DueTimers(t.Context(), saga.Key(name, "", "").Operation, 0, 10)
	if err != nil || len(due) != 1 {
		t.Errorf("%d orders are due, %v; want 1", len(due), err)
	}
}
