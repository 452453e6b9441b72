package outbox

import (
	"context"
	"errors"
	"time"
)

// Store is the side of an outbox that a Publisher uses. Package outboxtest tests that a
// store keeps the rules. It is safe for concurrent use.
//
// The messages of one Order are written one transaction after the other: a store lets
// no message become visible before an earlier one of its Order is committed or rolled
// back. A store finds messages because their rows are there, and remembers no position,
// because positions are not in the order of the commits.
type Store interface {
	// Lease renews the leases of a publisher for d, and claims free lanes while it has
	// fewer than its share. A lane is free if nobody has it, or its lease is over. A
	// claim gives the lane a new fence, higher than all before. It returns the lanes that
	// the publisher has, and its share: Lanes divided by the number of publishers that
	// have called Lease and whose leases are not over, rounded up.
	Lease(ctx context.Context, publisher string, d time.Duration) (lanes []Lane, share int, err error)
	// Release gives lanes back.
	Release(ctx context.Context, publisher string, lanes []Lane) error
	// Take returns about limit messages of the lanes whose fences still are those of the
	// lanes. For each Order that it returns, the messages are in order, begin with its
	// first one, and leave none out. It returns none of an Order that is in busy, none of
	// a stopped one, none of a delayed one before its time, and none of a topic in
	// paused; of an Order whose time has come after a failure, only the first. Orders that have
	// failed come first, with up to a quarter of the limit and at least one message. In a lane
	// the Order that is due the longest is the first of them. So neither they nor messages of
	// paused topics hold up others, however many there are. A message that cannot be read has
	// the error in Unreadable, so that it fails no Take.
	Take(ctx context.Context, lanes []Lane, busy []int64, paused []string, limit int) ([]Taken, error)
	// Settle records how messages ended that Take has returned. If the reply is lost, the
	// same results come again: a result other than Delivered changes nothing if its Attempts
	// are not those that the message has now, because it is recorded already. Neither does one of a
	// lane with another fence.
	Settle(ctx context.Context, results []Result) error
	// Trim deletes messages that were sent longer ago than the retention, about limit of
	// them, and returns how many.
	Trim(ctx context.Context, retention time.Duration, limit int) (int, error)
	// Woken is a channel that gets a value soon after messages were written. A value may
	// be missing. Nil: the store has no notifications.
	Woken() <-chan struct{}
}

// Lane is a lane that a publisher has leased.
type Lane struct {
	Number int
	Fence  int64
}

// Taken is a message that Take returns.
type Taken struct {
	Entry
	Lane  Lane
	Order int64
}

// Result is how a message ended.
type Result struct {
	*Taken
	Kind ResultKind
	// Delay is how long the message's Order waits, if Kind is Failed.
	Delay time.Duration
	// Error is why, unless Kind is Delivered.
	Error string
	// Keep says that the message stays as Sent, if Kind is Delivered.
	Keep bool
}

// ResultKind is the kind of a Result.
type ResultKind uint8

// The kinds of results.
const (
	Delivered ResultKind = iota + 1 // the destination has it
	Failed                          // its Order waits, and then begins with it again
	Refused                         // it goes to the quarantine, and its Order stops
)

// LongestDelay is the longest delay of a failed message.
const LongestDelay = time.Hour

// Inspector is the side of an outbox for operators and monitoring.
type Inspector interface {
	// Stats counts the messages that are not sent. Its cost grows with their number, and
	// not with the number of sent messages that are kept.
	Stats(ctx context.Context) (Stats, error)
	// List returns up to limit messages of a state in the order of their positions,
	// beginning after a position. Bodies are left out.
	List(ctx context.Context, state State, after int64, limit int) ([]Entry, error)
	// ListCall returns up to limit messages that the handler of a call has written, those in
	// the quarantine first, then held, waiting and sent ones, and each state in the order of
	// the positions. Hash is the CallHash of the call, or the 8 digits of it that logs show:
	// then the messages of another call with the same digits are in the list, too. Its cost
	// does not grow with the number of other messages. Bodies are left out.
	ListCall(ctx context.Context, hash string, limit int) ([]Entry, error)
	// Get returns a message, or ErrNotFound.
	Get(ctx context.Context, position int64) (Entry, error)
	// Retry makes a held or quarantined message, and its order key, due at once. A message
	// that waits needs no retry (ErrState).
	Retry(ctx context.Context, position int64) error
	// Drop deletes a message that is not sent. The later messages of its order key go on.
	// A publisher that is sending it at this moment may still publish it.
	Drop(ctx context.Context, position int64) error
}

// Stats counts the messages of an outbox that are not sent.
type Stats struct {
	Waiting     int64 // including those that are being sent
	Held        int64 // have failed, or wait for an earlier one of their order key that has
	Quarantined int64
	StoppedKeys int64         // order keys that wait for an operator
	OldestAge   time.Duration // of the oldest message that waits or is held
}

// Errors of an Inspector.
var (
	ErrNotFound = errors.New("outbox: there is no such message")
	ErrState    = errors.New("outbox: the message is in another state")
)
