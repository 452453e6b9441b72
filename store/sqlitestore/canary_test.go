package sqlitestore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
)

// canaryTenant has this text in its name, its keys, answers, headers, errors and steps.
const canaryTenant = "canary-4711"

// canaries is how often the text is in the files of a database.
func canaries(t *testing.T, path string) (hits int) {
	t.Helper()
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		doc, err := os.ReadFile(path + end)
		if err != nil && (end == "" || !errors.Is(err, os.ErrNotExist)) {
			t.Fatal(err)
		}
		hits += bytes.Count(doc, []byte(canaryTenant))
	}
	return hits
}

// fillWithCanaries makes n calls of every kind for the canary's tenant, and as many of
// another between them.
func fillWithCanaries(t *testing.T, st store.Store, n int) {
	t.Helper()
	g, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	orders, err := saga.New(g, saga.Definition[string, string]{
		Name: "order", Steps: []string{"charge"},
		Run: func(ctx context.Context, r *saga.Run, in string) (string, error) {
			return saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) { return in, nil }, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(4711, uint64(n)))
	for i := range n {
		for _, text := range []string{"other-0815", canaryTenant} {
			c := semel.Call{Operation: "pay", Tenant: text, Key: fmt.Sprint(text, "-key", rng.IntN(1000), "-", i), Payload: semel.NoPayload()}
			body := bytes.Repeat([]byte(text+" "), 1+rng.IntN([]int{3, 30, 3000}[rng.IntN(3)]))
			_, _ = g.Run(t.Context(), c, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
				o := store.Outcome{Code: 200, Body: body, Header: []store.Header{{Name: "Location", Value: text}}}
				switch i % 4 {
				case 0:
					return o, semel.Final(&semel.Failure{Code: "declined", Message: text, Data: body})
				case 1:
					return o, errors.New(text)
				case 2:
					_, err := semel.Do(ctx, g, x.Step("charge "+text), func(context.Context, *semel.Execution) (string, error) { return string(body), nil })
					return o, err
				}
				return o, nil
			})
		}
		if i%8 == 0 {
			if _, err := orders.Do(t.Context(), canaryTenant, fmt.Sprint(canaryTenant, i), canaryTenant); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// others are the records of the other tenant.
func others(t *testing.T, st *sqlitestore.Store) (all []string) {
	t.Helper()
	for f, err := range st.List(t.Context(), store.Filter{Tenant: "other-0815"}) {
		if err != nil {
			t.Fatal(err)
		}
		steps, err := st.Steps(t.Context(), f.Record.Lease())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%+v %+v", f.Record, steps))
	}
	return all
}

// After a tenant was erased and the file scrubbed, no byte of the tenant is in the files,
// while the store stays open, and the records of others are as they were.
func TestErase_Tenant_NoByteLeft(t *testing.T) {
	eraseCanaries(t, 60, false)
}

func TestCampaign_EraseTenants_NoByteLeft(t *testing.T) {
	if testing.Short() {
		t.Skip("the short form erases one")
	}
	rounds := 4
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		rounds = 20
	}
	for i := range rounds {
		eraseCanaries(t, 40+i*97, true)
	}
}

// eraseCanaries erases a tenant with some calls and scrubs the file, after sweeps, which
// empty the log, or without them.
func eraseCanaries(t *testing.T, n int, sweeps bool) {
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	fillWithCanaries(t, st, n)
	if hits := canaries(t, path); hits == 0 {
		t.Fatal("the canaries are not in the files, so the test would find nothing")
	}
	before := others(t, st)
	r, err := erase.Run(t.Context(), st, erase.Scope{Tenant: canaryTenant}, nil)
	if err != nil || r.Left() > 0 || r.Erased < n {
		t.Fatalf("erased %+v of %d, error %v", r, n, err)
	}
	erased := canaries(t, path)
	for i := 0; i < 3 && sweeps; i++ { // a pass gives back a part of the free pages
		for from := store.Cursor(""); ; {
			res, err := st.Sweep(t.Context(), from, 1000)
			if err != nil {
				t.Fatal(err)
			}
			if from = res.Next; from == "" {
				break
			}
		}
	}
	if sweeps {
		t.Logf("%d calls: after the erasure the canary is there %d times, and after sweeps %d times", n, erased, canaries(t, path))
	}
	if err := st.Scrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hits := canaries(t, path); hits > 0 {
		t.Errorf("%d calls: after Scrub the canary is there %d times", n, hits)
	}
	if after := others(t, st); fmt.Sprint(after) != fmt.Sprint(before) || len(after) != n {
		t.Errorf("the %d records of the other tenant have changed", len(after))
	}
}

// While somebody reads an older state of the file, its log cannot be emptied, and Scrub
// says so.
func TestScrub_OldReader_IsBusyUntilItEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, &sqlitestore.Options{BusyTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	fillWithCanaries(t, st, 8)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM semel_record").Scan(&n); err != nil || n == 0 {
		t.Fatal(n, err)
	}
	if _, err := erase.Run(t.Context(), st, erase.Scope{Tenant: canaryTenant}, nil); err != nil {
		t.Fatal(err)
	}
	if err := st.Scrub(t.Context()); !errors.Is(err, sqlitestore.ErrBusy) {
		t.Errorf("Scrub beside a reader: error %v, want ErrBusy", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := st.Scrub(t.Context()); err != nil || canaries(t, path) > 0 {
		t.Errorf("Scrub after the reader: error %v, and the canary is there %d times", err, canaries(t, path))
	}
}
