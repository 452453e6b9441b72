//go:build unix

package saga

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/test/internal/stores"
)

const workerEnv = "SEMEL_TEST_SAGA_WORKER"

// spec is what a worker process is told.
type spec struct {
	Backend, URL, Ledger string
	FreshKeys            bool // the control: each attempt sends a key of its own
}

func TestMain(m *testing.M) {
	text := os.Getenv(workerEnv)
	if text == "" {
		os.Exit(stores.Main(m))
	}
	var s spec
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = work(context.Background(), &s)
	}
	fmt.Fprintln(os.Stderr, "worker:", err)
	os.Exit(1)
}

// work works until the process is killed.
func work(ctx context.Context, s *spec) error {
	o, err := open(ctx, s)
	if err != nil {
		return err
	}
	return o.saga.Work(ctx, &saga.WorkOptions{Every: 20 * time.Millisecond, OnError: func(_ context.Context, err error) {
		fmt.Fprintln(os.Stderr, "worker:", err)
	}})
}

// opened is a saga over a store that several processes share.
type opened struct {
	saga   *saga.Saga[string, string]
	st     store.Store
	atomic semel.Runner
	end    func() error
}

// booking books an order in the transaction of ctx.
type booking func(ctx context.Context, id string, change int) error

// call is an effect, as the ledger is told of it.
type call struct {
	Saga, Step, Key, Of string
	Fence               uint64
	Undo                bool
}

// The steps of the saga. The booking is a transaction of the store's database.
var steps = []string{"hold", "charge", "book", "ship"}

func openStore(ctx context.Context, s *spec, o *opened) (booking, error) {
	switch s.Backend {
	case "sqlite":
		st, err := sqlitestore.Open(ctx, s.URL, nil)
		if err != nil {
			return nil, err
		}
		o.st, o.end = st, st.Close
		o.atomic, err = sqlitestore.NewAtomic(st, nil)
		return func(ctx context.Context, id string, change int) error {
			tx, ok := sqlitestore.TxFrom(ctx)
			if !ok {
				return errors.New("no transaction")
			}
			_, err := tx.ExecContext(ctx, "INSERT INTO booking VALUES (?, ?)", id, change)
			return err
		}, err
	case "postgres":
		st, err := pgstore.Open(ctx, s.URL, &pgstore.Options{NoMigrate: true})
		if err != nil {
			return nil, err
		}
		o.st, o.end = st, st.Close
		o.atomic, err = pgstore.NewAtomic(st, nil)
		return func(ctx context.Context, id string, change int) error {
			tx, ok := pgstore.TxFrom(ctx)
			if !ok {
				return errors.New("no transaction")
			}
			_, err := tx.Exec(ctx, "INSERT INTO booking VALUES ($1, $2)", id, change)
			return err
		}, err
	case "dynamodb":
		return openDynamo(s, o)
	}
	return nil, fmt.Errorf("no backend %q", s.Backend)
}

func open(ctx context.Context, s *spec) (*opened, error) {
	o := &opened{}
	booking, err := openStore(ctx, s, o)
	if err != nil {
		return nil, err
	}
	lease := 400 * time.Millisecond
	if s.Backend == "dynamodb" { // its emulator is slow
		lease = 2 * time.Second
	}
	guard, err := semel.New(o.st, &semel.Options{Lease: lease})
	if err != nil {
		return nil, err
	}
	send := func(ctx context.Context, r *saga.Run, step string, at saga.At, undo bool) error {
		c := call{Saga: r.ID(), Step: step, Key: at.Key(), Of: at.StepKey(), Fence: at.Fence(), Undo: undo}
		if s.FreshKeys {
			c.Key = fmt.Sprint(c.Key, " of process ", os.Getpid())
		}
		return post(ctx, s.Ledger, &c)
	}
	o.saga, err = saga.New(guard, saga.Definition[string, string]{
		Name: "order", Steps: steps, UndoAttempts: 1000,
		Backoff: func(int) time.Duration { return 20 * time.Millisecond },
		Run: func(ctx context.Context, r *saga.Run, id string) (string, error) {
			for _, step := range steps {
				var err error
				if step == "book" {
					_, err = saga.StepIn(ctx, r, o.atomic, step, func(ctx context.Context, at saga.At) (string, error) {
						if err := booking(ctx, id, 1); err != nil {
							return "", err
						}
						return step, send(ctx, r, "between", at, false) // the process may die here, and the booking with it
					}, func(ctx context.Context, at saga.At, _ string) error { return send(ctx, r, step, at, true) })
				} else {
					_, err = saga.Step(ctx, r, step, func(ctx context.Context, at saga.At) (string, error) {
						return step, send(ctx, r, step, at, false)
					}, func(ctx context.Context, at saga.At, v string) error {
						if v != step && !at.InDoubt() {
							return fmt.Errorf("the compensation got %q", v)
						}
						return send(ctx, r, step, at, true)
					})
				}
				if err != nil {
					return "", err
				}
			}
			return "booked " + id, nil
		},
	})
	return o, err
}

// post tells the ledger of an effect. The ledger refuses it for good, or answers that
// the effect is done.
func post(ctx context.Context, url string, c *call) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	switch res.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusConflict:
		return &semel.Failure{Code: "refused", Message: "refused"}
	}
	return fmt.Errorf("the ledger answers %s", res.Status)
}

// prepare makes the tables.
func prepare(ctx context.Context, s *spec) error {
	const table = "CREATE TABLE booking (id text, change integer)"
	switch s.Backend {
	case "dynamodb":
		st, err := dynamoStore(s)
		if err != nil {
			return err
		}
		return st.Migrate(ctx)
	case "postgres":
		st, err := pgstore.Open(ctx, s.URL, nil)
		if err != nil {
			return err
		}
		return errors.Join(execute("pgx", s.URL, table), st.Close())
	}
	return execute("sqlite", s.URL, table)
}

func execute(driver, url, statement string) error {
	db, err := sql.Open(driver, url)
	if err != nil {
		return err
	}
	_, err = db.Exec(statement)
	return errors.Join(err, db.Close())
}

// bookings counts the rows of the transactions, by saga.
func bookings(ctx context.Context, s *spec) (count map[string]int, err error) {
	driver := "sqlite"
	switch s.Backend {
	case "dynamodb":
		return dynamoBookings(ctx, s)
	case "postgres":
		driver = "pgx"
	}
	db, err := sql.Open(driver, s.URL)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.Query("SELECT id, sum(change) FROM booking GROUP BY id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	count = map[string]int{}
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		count[id] = n
	}
	return count, rows.Err()
}
