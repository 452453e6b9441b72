package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// Harness is how the suite gets at a store. Only Open is required; a nil or
// zero field says "not here". The functions may be called from several tests
// at once, each time for a store of its own.
type Harness struct {
	// Open makes an empty store that is shared with no other test and that t
	// cleans up. Required.
	Open func(t testing.TB) store.Store

	// Advance moves the clock of s on by d, or back if d is negative, and has
	// done so when it returns. The clock may stand still between two calls or
	// run; one that stands still is tested to the microsecond. Nil: the suite
	// uses short leases and real time.
	Advance func(t testing.TB, s store.Store, d time.Duration)

	// Reopen makes a second handle on the records of s, as another process
	// would have one, with the same clock. Nil: not possible, and the suite
	// uses the one handle from several goroutines.
	Reopen func(t testing.TB, s store.Store) store.Store

	// Begin opens a transaction on s. Where only one transaction can be open
	// at a time it waits for its turn. Nil: the store has no transactions.
	Begin func(t testing.TB, s store.Store) Tx

	// Skew is the largest clock error that the store declares; zero for a
	// store with one clock.
	Skew time.Duration

	// Histories is how many random histories are compared with the memory
	// store; zero: 200, negative: none.
	Histories int
}

// Tx is a transaction for the suite: that of the store, with a business write
// to tell whether it takes effect. Not safe for concurrent use, but for
// Effects.
type Tx interface {
	store.Tx

	// Effect writes a row of the given name inside the transaction. Names may
	// repeat: each write is a row.
	Effect(ctx context.Context, name string) error
	// Effects are the names of all committed rows, read outside the
	// transaction, in any order. It works after Commit and Rollback too.
	Effects(ctx context.Context) ([]string, error)
	// Commit and Rollback end the transaction. Rollback after Commit does
	// nothing.
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// check is one rule and the test of it.
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
}

// Run proves the store that h opens: each rule is a subtest, named after it.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Open == nil {
		t.Fatal("storetest: Harness.Open is nil; set it to a function that makes an empty store")
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
