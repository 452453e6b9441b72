package dboscompare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// nap is a step that sleeps, in the saga that is the Sleeper.
const nap = "nap"

// spec says what a process does.
type spec struct {
	Contender, URL, Ledger string
	Process                string
	Steps                  []string      // of the definition
	Run                    []string      // the ids of the sagas to run
	Sleeper                string        // the id of the saga that sleeps
	Nap                    time.Duration // how long
	Deadline               time.Duration // of the sagas; zero: none
	Lease                  time.Duration // Semel's
	Parked                 string        // Semel's step that is Parked
	Executor, Version      string        // DBOS's
	Retries                int           // DBOS's retries of a step
}

// runner is one of the two, opened.
type runner interface {
	run(ctx context.Context, id string) (string, error)
	work(ctx context.Context) error
	close() error
	// status is the state and the error of a saga, and whether it has ended or is stuck.
	status(ctx context.Context, id string) (text string, ended bool)
	recorded(ctx context.Context, id, step string) string
	again(ctx context.Context, id string) error
}

func open(ctx context.Context, s *spec) (runner, error) {
	if s.Contender == "Semel" {
		return openSemel(ctx, s)
	}
	return openDBOS(ctx, s)
}

func journalOf(st store.Store) store.Journal {
	j, _ := store.As[store.Journal](st)
	return j
}

const processEnv = "SEMEL_TEST_COMPARE_PROCESS"

func TestMain(m *testing.M) {
	text := os.Getenv(processEnv)
	if text == "" {
		os.Exit(pgtest.Main(m))
	}
	var s spec
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = process(context.Background(), &s)
	}
	fmt.Fprintln(os.Stderr, s.Process, "ends:", err)
	os.Exit(1)
}

// process works until it is killed.
func process(ctx context.Context, s *spec) error {
	r, err := open(ctx, s)
	if err != nil {
		return err
	}
	for _, id := range s.Run {
		go func() {
			result, err := r.run(ctx, id)
			if err != nil {
				result = "error: " + err.Error()
			}
			if err := tell(ctx, s.Ledger, &call{Process: s.Process, Saga: id, Returned: result}); err != nil {
				fmt.Fprintln(os.Stderr, s.Process, "tell:", err)
			}
		}()
	}
	return r.work(ctx)
}

// world is one contender with a database and a ledger of its own.
type world struct {
	*ledger
	contender string
	base      spec
	watch     runner // looks only
}

// both runs a test with each contender.
func both(t *testing.T, base spec, test func(t *testing.T, w *world)) {
	if os.Getenv("SEMEL_TEST_COMPARE") != "1" {
		t.Skip("compares what happens when processes are killed and frozen: set SEMEL_TEST_COMPARE=1")
	}
	server := pgtest.URL(t)
	for _, contender := range []string{"Semel", "DBOS"} {
		t.Run(contender, func(t *testing.T) {
			w := &world{ledger: newLedger(t), contender: contender, base: base}
			w.base.Contender, w.base.Ledger, w.base.URL = contender, w.url, database(t, server)
			if w.base.Steps == nil {
				w.base.Steps = []string{"hold", "charge", "ship"}
			}
			if w.base.Lease == 0 {
				w.base.Lease = 4 * time.Second
			}
			watch := w.base
			watch.Executor, watch.Version = "watcher", "watcher"
			w.watch = w.open(t, watch)
			test(t, w)
		})
	}
}

var databases atomic.Int64

// database makes an empty database.
func database(t *testing.T, server string) string {
	t.Helper()
	name := fmt.Sprintf("compare_%d_%d", os.Getpid(), databases.Add(1))
	c, err := pgx.Connect(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Exec(t.Context(), "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	if err := errors.Join(err, c.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(server, "/postgres?", "/"+name+"?", 1)
}

// open opens the contender in the process of the test.
func (w *world) open(t *testing.T, s spec) runner {
	t.Helper()
	r, err := open(context.Background(), &s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// start starts a process. change changes what it does.
func (w *world) start(t *testing.T, name string, change func(s *spec)) *proctest.Process {
	t.Helper()
	s := w.base
	s.Process = name
	if change != nil {
		change(&s)
	}
	text, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	return proctest.Run(t, proctest.Self(t, processEnv+"="+string(text)))
}

// end waits until a saga has ended or is stuck, and returns its status.
func (w *world) end(t *testing.T, id string) string {
	t.Helper()
	over := time.Now().Add(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		text, ended := w.watch.status(t.Context(), id)
		if ended {
			return text
		}
		if time.Now().After(over) {
			t.Fatalf("%s has not ended: %s; %s", id, text, w.trace(id))
		}
	}
}

// want is what is expected of the two.
type want struct{ semel, dbos string }

// saw prints what was seen of a rule, and compares it. A text of want that ends with "…"
// is the beginning.
func (w *world) saw(t *testing.T, what, got string, expected want) {
	t.Helper()
	text := expected.semel
	if w.contender == "DBOS" {
		text = expected.dbos
	}
	t.Logf("%s: %s: %s", w.contender, what, got)
	prefix, open := strings.CutSuffix(text, "…")
	if got != text && !(open && strings.HasPrefix(got, prefix)) {
		t.Errorf("%s: %s: got %q, want %q", w.contender, what, got, text)
	}
}
