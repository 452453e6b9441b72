package sqlitestore

import (
	"context"
	"database/sql"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/recordtest"
)

// testClock is a clock that a test moves, by the handles' common path.
type testClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *testClock { return &testClock{now: time.Unix(1_700_000_000, 123_456_789)} }

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// openAt opens a store that t closes.
func openAt(t testing.TB, path string, o *Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// openNew opens a store in a new file.
func openNew(t testing.TB, o *Options) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "semel.db"), o)
}

// application is the application's own handle on the store's file.
func application(t testing.TB, s *Store, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.path+"?"+dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// immediate is the DSN that the documentation asks for.
const immediate = "_txlock=immediate&_pragma=busy_timeout(10000)"

func mustExec(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// The records of the tests.
var (
	testKey, newOwner, proposal, completion = recordtest.Key, recordtest.NewOwner, recordtest.Proposal, recordtest.Completion
	claim, complete, get                    = recordtest.Claim, recordtest.Complete, recordtest.Get
)

func itoa(n int) string { return strconv.Itoa(n) }

// call is one of an Atomic.
func call(key string) semel.Call {
	return semel.Call{Operation: "pay", Tenant: "ann", Key: key, Payload: semel.NoPayload()}
}

// nothing is a handler without an effect.
func nothing(context.Context, *semel.Execution, *sql.Tx) error { return nil }
