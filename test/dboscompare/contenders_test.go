package dboscompare

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store/pgstore"
)

// contender runs sagas of n steps, each of which returns a number.
type contender struct {
	name string
	run  func(ctx context.Context, id string, n int) error
	wire *wire
}

// The numbers of connections of a pgstore, and of a DBOS system database, by default.
const (
	semelConnections = 12
	dbosConnections  = 20
)

// semelSaga is package saga over pgstore, with a worker, and with the default options but
// the number of connections.
func semelSaga(t *testing.T, url string, delay time.Duration, connections int) contender {
	t.Helper()
	w := &wire{delay: delay}
	st, err := pgstore.New(t.Context(), w.pool(t, url, 4), &pgstore.Options{Connections: connections})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	guard, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := saga.New(guard, saga.Definition[int, int]{
		Name: "bench", Steps: []string{"step/*"},
		Run: func(ctx context.Context, r *saga.Run, n int) (sum int, err error) {
			for i := range n {
				v, err := saga.Step(ctx, r, fmt.Sprint("step/", i), func(context.Context, saga.At) (int, error) { return i, nil }, nil)
				if err != nil {
					return 0, err
				}
				sum += v
			}
			return sum, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	background(t, func(ctx context.Context) error { return s.Work(ctx, nil) })
	return contender{fmt.Sprintf("Semel (%d connections)", connections), func(ctx context.Context, id string, n int) error {
		_, err := s.Do(ctx, "bench", id, n)
		return err
	}, w}
}

// background runs fn until the test ends.
func background(t *testing.T, fn func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- fn(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// dbosWorkflow is a workflow of DBOS, with the default options but the pool's size.
func dbosWorkflow(t *testing.T, url string, delay time.Duration, connections int32) contender {
	t.Helper()
	w := &wire{delay: delay}
	root, err := dbos.NewContext(context.Background(), dbos.Config{
		AppName: "bench", SystemDBPool: w.pool(t, url, connections), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	workflow := func(ctx dbos.Context, n int) (sum int, err error) {
		for i := range n {
			v, err := dbos.RunAsStep(ctx, func(context.Context) (int, error) { return i, nil }, dbos.WithStepName(fmt.Sprint("step/", i)))
			if err != nil {
				return 0, err
			}
			sum += v
		}
		return sum, nil
	}
	dbos.RegisterWorkflow(root, workflow)
	if err := dbos.Launch(root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dbos.Shutdown(root, time.Minute); err != nil {
			t.Error(err)
		}
	})
	return contender{fmt.Sprintf("DBOS (%d connections)", connections), func(ctx context.Context, id string, n int) error {
		h, err := dbos.RunWorkflow(root, workflow, n, dbos.WithWorkflowID(id))
		if err == nil {
			_, err = h.GetResult()
		}
		return err
	}, w}
}
