package redisstore

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"
)

// Options configures a Store. Nil and zero fields mean the defaults.
type Options struct {
	// Prefix is the prefix of the name of each key of the store: "semel:" by default.
	// Stores with different prefixes share a server and see nothing of each
	// other. It must not hold a brace, by which Redis Cluster picks the node.
	Prefix string
	// Linger is how long Redis keeps a record after its expiry, so that a
	// sweep can remove it and remember its fence: 1 h by default. After Linger
	// Redis removes the record and forgets its fence: the key may then get a
	// lower fence if the server's clock is set back by more than the retention
	// and Linger.
	Linger time.Duration
	// Replicas is how many replicas must acknowledge a change before it
	// counts (WAIT, or WAITAOF with Fsync). A claim, or a renewal, that fewer
	// acknowledge is refused with ErrNotAcknowledged; the refused claim
	// holds its key until its lease ends. A settlement that fewer acknowledge
	// is sent once more. If fewer acknowledge that, too, the settlement stays
	// recorded, and the store returns ErrUnconfirmed. A duplicate gets the
	// outcome only after the replicas have acknowledged it. Zero: none.
	// Replicas makes the loss of records at a fail-over less likely, and does
	// not exclude it; see the package's documentation.
	Replicas int
	// Fsync also waits until the change is on the disk of the server and of
	// the Replicas (WAITAOF: Redis 7.2 or Valkey, with appendonly on). A server
	// that lacks it is ErrUnsafe. With appendfsync everysec that takes up to
	// two seconds: set AckTimeout accordingly, or appendfsync always.
	Fsync bool
	// AckTimeout bounds each wait for Replicas and Fsync: 500 ms by default.
	// Keep it below the client's ReadTimeout (3 s if it is not set), because
	// the client takes a longer wait for a broken connection.
	AckTimeout time.Duration
	// AllowEviction accepts a server whose maxmemory-policy is not noeviction.
	// When memory is short, Redis then removes records, and their operations
	// run again. Without it claims are ErrUnsafe.
	AllowEviction bool
	// AllowPark accepts claims with policy park. Set it when you have read in
	// the package's documentation which records Redis loses and when: an effect
	// may then happen twice although its policy forbids it. Without it such
	// claims are refused.
	AllowPark bool
	// Flushers is how many round trips with claims, as many with settlements
	// and as many with reads are in flight at once: 2 by default. Each takes
	// a connection of the client's pool.
	Flushers int
	// MaxBatch is the most claims, settlements or reads of a round trip: 256
	// by default.
	MaxBatch int

	clock string // a Lua expression for the time in microseconds. For tests.
}

// wallClock is the Lua expression for the time when the script runs.
const wallClock = `(function() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end)()`

const maxPrefix = 100

// maxLinger keeps expiry times within the server's range.
const maxLinger = 100 * 365 * 24 * time.Hour

func (o *Options) withDefaults() (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	d.Prefix = cmp.Or(d.Prefix, "semel:")
	d.Linger = cmp.Or(d.Linger, time.Hour)
	d.AckTimeout = cmp.Or(d.AckTimeout, 500*time.Millisecond)
	d.Flushers = cmp.Or(d.Flushers, 2)
	d.MaxBatch = cmp.Or(d.MaxBatch, 256)
	d.clock = cmp.Or(d.clock, wallClock)
	switch {
	case len(d.Prefix) > maxPrefix:
		return d, fmt.Errorf("redisstore: Options.Prefix has %d bytes; the limit is %d", len(d.Prefix), maxPrefix)
	case strings.ContainsAny(d.Prefix, "{}"):
		return d, fmt.Errorf("redisstore: Options.Prefix is %q; it must not hold a brace: Redis Cluster picks the node by the text in braces", d.Prefix)
	case d.Linger < time.Second || d.Linger > maxLinger:
		return d, fmt.Errorf("redisstore: Options.Linger is %v; it must be 1s to 100 years", d.Linger)
	case d.Replicas < 0 || d.Replicas > 1000:
		return d, fmt.Errorf("redisstore: Options.Replicas is %d; it must be 0 to 1000", d.Replicas)
	case d.AckTimeout < time.Millisecond || d.AckTimeout > math.MaxInt32*time.Millisecond:
		return d, fmt.Errorf("redisstore: Options.AckTimeout is %v; it must be 1ms to 24 days", d.AckTimeout)
	case d.Flushers < 1 || d.Flushers > 100:
		return d, fmt.Errorf("redisstore: Options.Flushers is %d; it must be 1 to 100", d.Flushers)
	case d.MaxBatch < 1 || d.MaxBatch > 2000:
		return d, fmt.Errorf("redisstore: Options.MaxBatch is %d; it must be 1 to 2000", d.MaxBatch)
	}
	return d, nil
}

// waitsForAcks reports whether changes wait for acknowledgements.
func (o *Options) waitsForAcks() bool { return o.Replicas > 0 || o.Fsync }
