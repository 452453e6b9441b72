//go:build unix

package saga

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store/sqlitestore"
)

// The writes of a step in a transaction and its record commit together: a failed attempt
// leaves neither, and a recorded step is not written again.
func TestStepIn_AttemptFails_WritesOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := &spec{Backend: "sqlite", URL: filepath.Join(t.TempDir(), "semel.db")}
	if err := prepare(ctx, s); err != nil {
		t.Fatal(err)
	}
	st, err := sqlitestore.Open(ctx, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	guard, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	atomic, err := sqlitestore.NewAtomic(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	errBoom := errors.New("connection reset")
	books, ships := 0, 0
	once := &counted{Runner: atomic}
	orders, err := saga.New(guard, saga.Definition[string, string]{
		Name: "order", Steps: []string{"book", "ship"}, Backoff: func(int) time.Duration { return 0 },
		Run: func(ctx context.Context, r *saga.Run, id string) (string, error) {
			booked, err := saga.StepIn(ctx, r, once, "book", func(ctx context.Context, _ saga.At) (string, error) {
				books++
				tx, _ := sqlitestore.TxFrom(ctx)
				if _, err := tx.ExecContext(ctx, "INSERT INTO booking VALUES (?, 1)", id); err != nil {
					return "", err
				}
				if books == 1 {
					return "", errBoom
				}
				return "booked", nil
			}, nil)
			if err != nil {
				return "", err
			}
			return saga.Step(ctx, r, "ship", func(context.Context, saga.At) (string, error) {
				if ships++; ships == 1 {
					return "", errBoom
				}
				return booked, nil
			}, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for attempt := 1; ; attempt++ {
		out, err := orders.Do(ctx, semel.Shared, "o1", "o1")
		if err == nil && out == "booked" {
			break
		}
		if !errors.Is(err, errBoom) || attempt == 4 {
			t.Fatalf("attempt %d: %q, %v", attempt, out, err)
		}
	}
	count, err := bookings(ctx, s)
	if err != nil || count["o1"] != 1 || books != 2 {
		t.Errorf("%d rows after %d runs of the step, error %v; want 1 after 2", count["o1"], books, err)
	}
	if once.transactions != 2 {
		t.Errorf("there were %d transactions; the third attempt needs none, because the step is recorded", once.transactions)
	}
}

// counted counts the transactions of a Runner.
type counted struct {
	semel.Runner
	transactions int
}

func (c *counted) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	c.transactions++
	return c.Runner.Run(ctx, call, fn)
}
