package dynamostore

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel/internal/recordtest"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

var tables atomic.Int64

// newTable is the name of a table that no other test has.
func newTable() string { return fmt.Sprintf("semel-%d-%d", os.Getpid(), tables.Add(1)) }

// standingClock is a clock that only a test moves.
type standingClock struct {
	mu  sync.Mutex
	now time.Time
}

func newStandingClock() *standingClock {
	// In the future, because the emulator deletes by its own clock what has expired.
	return &standingClock{now: time.Now().Add(365 * 24 * time.Hour).Truncate(time.Second).Add(123_456_000)}
}

func (c *standingClock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *standingClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// openOn is a store on a table of a client.
func openOn(t testing.TB, c *dynamodb.Client, table string, o *Options) *Store {
	t.Helper()
	s, err := New(c, table, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openAgain is another store on the table of s on the shared server.
func openAgain(t testing.TB, s *Store, o *Options) *Store {
	t.Helper()
	return openOn(t, dynamotest.Client(dynamotest.URL(t)), s.table, o)
}

// openNew is a store on a table of its own on the shared server.
func openNew(t testing.TB, o *Options) *Store {
	t.Helper()
	opt := Options{IndexShards: 2, SweepExpired: true}
	if o != nil {
		opt = *o
	}
	client := dynamotest.Client(dynamotest.URL(t))
	s := openOn(t, client, newTable(), &opt)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &s.table})
	})
	return s
}

// The records of the tests.
var (
	testKey, newOwner, proposal, completion = recordtest.Key, recordtest.NewOwner, recordtest.Proposal, recordtest.Completion
	claim, complete, get                    = recordtest.Claim, recordtest.Complete, recordtest.Get
)

// getInput reads an item consistently.
func getInput(s *Store, partition string) *dynamodb.GetItemInput {
	consistent := true
	return &dynamodb.GetItemInput{TableName: &s.table, Key: s.key(partition), ConsistentRead: &consistent}
}
