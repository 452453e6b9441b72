// Package consumetest tests the adapter of a broker with one suite, the same
// for each. It runs real consumers over the adapter, takes away their store,
// their broker and their process, and counts the effects.
//
// It needs the standard library only.
package consumetest

import (
	"testing"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

const defaultPatience = 3 * time.Minute

// Harness describes an adapter to the suite.
type Harness struct {
	// Open makes a broker for one test, or new and empty destinations on a
	// shared one; t cleans it up. Required. Tests run in parallel.
	Open func(t testing.TB) Broker
	// Store makes the empty store of one test; t cleans it up. Required. A
	// store in memory is enough, because the suite tests the adapter.
	Store func(t testing.TB) store.Store
	// Patience is how long a test waits for an event, including the redelivery
	// of a dead consumer's messages: 3 minutes by default.
	Patience time.Duration
	// Unordered: the broker does not deliver in the order of publication, so
	// that the suite does not check order per key.
	Unordered bool
}

// Broker is a topic or queue with one consumer group, and with its dead
// letters and its quarantine. Safe for concurrent use. It fails the test by
// t.
type Broker interface {
	// Publish sends messages in this order, with their OrderKey, Headers and
	// Body, and returns when the broker has them.
	Publish(t testing.TB, ms ...consume.Message)
	// Connect makes one more member of the group, as a new process would. If
	// its Info has an AckWait, make that 1.2 to 1.6 s.
	Connect(t testing.TB) Conn
	// Copies returns every copy that was forwarded to the dead letters or to
	// the quarantine.
	Copies(t testing.TB, to driver.Action) []consume.Message
	// Unsettled counts the published messages that are not acked.
	Unsettled(t testing.TB) int
}

// Stater is implemented by brokers that can say what they know of the group. The suite
// logs it if messages are not settled in time.
type Stater interface {
	State(t testing.TB) string
}

// Conn is a member of the group: a Source that the suite can take away.
type Conn interface {
	driver.Source
	// Kill ends it as the death of its process would: at once and without a
	// message to the broker. After that each call of it and of its deliveries
	// fails.
	Kill()
	// Close ends it in an orderly way, after Serve has returned. After Kill it
	// does nothing.
	Close() error
}

// check is one test of the suite.
type check struct {
	name    string
	run     func(w *world)
	ordered bool // it needs order
}

func checks() []check {
	return []check{
		{name: "each message runs once and is acked", run: eachRunsOnce},
		{name: "a failed message comes again", run: failedComesAgain},
		{name: "a failed message goes back to the broker", run: failedGoesBack},
		{name: "a panic is a failure", run: panicIsAFailure},
		{name: "a duplicate in the same batch does not run", run: duplicateInTheBatch},
		{name: "duplicates on two consumers at once run once", run: duplicatesOnTwoConsumers},
		{name: "in flight elsewhere is held, and acked when done", run: inFlightElsewhere},
		{name: "in flight elsewhere is held, and run when that dies", run: inFlightElsewhereDies},
		{name: "a crash before the effect", run: crashBeforeTheEffect},
		{name: "a crash after the effect", run: crashAfterTheEffect},
		{name: "a crash after the effect, under park", run: crashAfterTheEffectParked},
		{name: "a crash with later messages done", run: crashWithLaterDone},
		{name: "a crash before the ack", run: crashBeforeTheAck},
		{name: "an ack that fails is repeated", run: ackFails},
		{name: "an ack that is lost does no harm", run: ackLost},
		{name: "a nak that fails loses nothing", run: nakFails},
		{name: "a copy that cannot be sent is not acked", run: copyFails},
		{name: "a crash between copy and ack", run: crashBetweenCopyAndAck},
		{name: "poison ends in the dead letters", run: poison},
		{name: "poison that kills its process ends in the dead letters", run: poisonKills},
		{name: "a failure is a dead letter", run: failureIsADeadLetter},
		{name: "another payload is a dead letter", run: mismatch},
		{name: "a redriven dead letter runs again once", run: redriven},
		{name: "an unknown outcome goes to the quarantine", run: unknown},
		{name: "no key is a dead letter", run: noKey},
		{name: "no key can stop the consumer", run: rejected},
		{name: "a message older than the retention is not run", run: late},
		{name: "a dead letter says where it came from", run: letterContents},
		{name: "the store is down at the start", run: storeDownAtStart},
		{name: "the store goes down and comes back", run: storeGoesDown},
		{name: "a slow handler keeps its message", run: slowHandler},
		{name: "a handler that loses its lease does not count", run: leaseLost},
		{name: "a late ack for an older delivery does no harm", run: lateAck},
		{name: "a message that waits is kept", run: waitingIsKept},
		{name: "shutdown under load loses nothing", run: shutdown},
		{name: "shutdown gives back what waits", run: shutdownGivesBack},
		{name: "order per key", run: orderPerKey, ordered: true},
		{name: "order per key over retries", run: orderOverRetries, ordered: true},
		{name: "order per key over a stop", run: orderOverAStop, ordered: true},
		{name: "large messages and odd headers", run: largeMessage},
		{name: "the address of a message stays the same", run: addressStays},
		{name: "messages that wait through restarts are not dead-lettered", run: waitingIsNoTrying},
		{name: "a key that fails does not delay the others", run: stuckKeyLeavesRoom},
		{name: "a shard that hangs leaves handlers to the others", run: stuckShardLeavesHandlers},
		{name: "consumers die all the time and nothing is lost", run: nothingLost},
		{name: "all fails at once and each message has its end", run: inAStorm},
	}
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	if h.Open == nil || h.Store == nil {
		t.Fatal("consumetest: Harness.Open and Harness.Store: must not be nil")
	}
	if h.Patience == 0 {
		h.Patience = defaultPatience
	}
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			if c.ordered && h.Unordered {
				t.Skip("the broker does not deliver in order")
			}
			t.Parallel()
			c.run(newWorld(t, h))
		})
	}
}
