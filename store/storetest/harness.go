package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// Harness tells the suite how to open a store and what the store can do. Only
// Open is required; a nil or zero field means that the store cannot do it. Several
// tests may call the functions at the same time, each for a store of its own.
type Harness struct {
	// Open makes an empty store that only t uses, and closes it with t.Cleanup.
	Open func(t testing.TB) store.Store

	// Advance moves the clock of s forward by d, or back if d is negative, before
	// it returns. Between two calls the clock may stand still or run; if it stands
	// still, the suite tests to the microsecond. If Advance is nil, the suite uses
	// short leases and real time.
	Advance func(t testing.TB, s store.Store, d time.Duration)

	// Reopen opens the records of s a second time, like another process, with the
	// same clock. If Reopen is nil, the suite uses one handle from several
	// goroutines.
	Reopen func(t testing.TB, s store.Store) store.Store

	// Begin opens a transaction on s. If s is a store.Journal, so is the
	// transaction. If only one transaction can be open at a
	// time, Begin waits for its turn. If Begin is nil, the store has no
	// transactions.
	Begin func(t testing.TB, s store.Store) Tx

	// HideOutcomes makes the outcomes that s has recorded unreadable, as an outage of the
	// place where they are kept does. The rest of the records stays readable. If
	// HideOutcomes is nil, a record that can be read has its outcome.
	HideOutcomes func(t testing.TB, s store.Store)

	// Skew is the largest clock error that the store declares. It is zero for a
	// store with one clock.
	Skew time.Duration

	// Histories is the number of random histories that are compared with the
	// memory store. The default is 200, 20 with go test -short, and 1000 with the
	// variable SEMEL_EVIDENCE=1; a negative number turns them off.
	Histories int
}

// Tx is a transaction of the store together with writes of the application, by
// which the suite sees whether the transaction takes effect. Only Effects is safe
// for concurrent use.
type Tx interface {
	store.Tx

	// Effect writes a row with the given name inside the transaction. Names may
	// repeat: each write adds a row.
	Effect(ctx context.Context, name string) error
	// Effects returns the names of all committed rows, in any order, read outside
	// the transaction. It also works after Commit and Rollback.
	Effects(ctx context.Context) ([]string, error)
	// Commit and Rollback end the transaction. Rollback after Commit does
	// nothing.
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// check is one rule and its test.
type check struct {
	name string
	run  func(b *bed)
}

// topics lists the suite in the order of the files.
var topics = []struct {
	name   string
	checks []check
}{
	{"record", recordChecks},
	{"claim", claimChecks},
	{"swap", swapChecks},
	{"settle", settleChecks},
	{"renew", renewChecks},
	{"fence", fenceChecks},
	{"expiry", expiryChecks},
	{"sweep", sweepChecks},
	{"clock", clockChecks},
	{"list", listChecks},
	{"keys", keysChecks},
	{"context", contextChecks},
	{"tx", txChecks},
	{"journal", journalChecks},
	{"former owners", formerOwnerChecks},
	{"timers", timerChecks},
	{"erase", eraseChecks},
	{"receive", receiveChecks},
	{"wait", waitChecks},
}

// Run tests the store that h opens. Each rule is a subtest, named after the rule.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Open == nil {
		t.Fatal("storetest: Harness.Open is nil; set it to a function that opens an empty store")
	}
	for _, topic := range topics {
		t.Run(topic.name, func(t *testing.T) {
			t.Parallel()
			runChecks(t, &h, topic.checks)
		})
	}
	t.Run("histories", func(t *testing.T) {
		t.Parallel()
		runHistories(t, &h)
	})
}

// runChecks runs each check on a store of its own.
func runChecks(t *testing.T, h *Harness, checks []check) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newBed(t, h))
		})
	}
}
