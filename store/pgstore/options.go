package pgstore

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/semel-go/semel/store/pgstore/internal/schema"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// Options configures a Store. Nil and zero fields mean the defaults.
type Options struct {
	// Schema is the PostgreSQL schema that holds Semel's tables: "semel" by
	// default. The name is quoted, so its case counts.
	Schema string
	// NoMigrate makes Open and New fail with ErrSchema if the tables are not
	// there, or old, instead of making them. See Migrate and Migrations.
	NoMigrate bool
	// RelaxedClaims lets a claim's commit not wait for the disk; that of a
	// settlement still does, and takes the claim with it. What it costs: a
	// crash of the server (not of a client) may lose the claims of the last
	// three wal_writer_delay (600 ms), and then a retry runs the handler a
	// second time, even beside the first, whose settlement is ErrLeaseLost.
	// Policy Park cannot bear that: its claims are refused. Off by default.
	RelaxedClaims bool
	// LockTimeout is how long a change waits for a row that another
	// transaction holds: 5 s by default. Then it is ErrBusy. A few wait at a
	// time; the others queue for a place first, as long as their contexts let.
	LockTimeout time.Duration
	// Connections is how many connections the store opens for itself, apart
	// from a pool that it is given, so that handlers which hold that pool
	// cannot starve it: 12 by default, and one more for renewals, or up to 4 while
	// one of those hangs.
	Connections int
	// Flushers is how many round trips with claims, and as many with
	// settlements, are in flight at once: 4 by default. No more than a third
	// of Connections. With claims under RelaxedClaims, which wait for no disk,
	// it is 2 at most.
	Flushers int
	// MaxBatch is the most claims, or settlements, of a round trip: 256 by
	// default.
	MaxBatch int

	// Partitions is in how many partitions, by hash of the id, the table of
	// records is made: for tables so large that vacuuming one of them takes too
	// long. 0, the default, makes one table; at most 256. It is fixed when the
	// tables are made: if they are there, 0 takes them as they are, and another
	// number must be theirs, else it is ErrSchema. A key has one place whatever
	// the number is; see the package's documentation. It is not for speed:
	// claims with settlements by 256 goroutines ran at 0.88 times the rate in 8
	// partitions, and at 0.69 in 64 (two cores), as a plan that is kept locks
	// them all.
	Partitions int
	// Notify lets a call that waits for a running duplicate be told of its end
	// (LISTEN, NOTIFY) instead of asking for it again and again. Off by
	// default. It takes two connections more, or up to 5 while one of them hangs.
	// All processes that share the schema must have it: of what one without it ends
	// nobody is told, nor of what ends in a transaction of the caller's (Atomic.In),
	// and who waits for that looks every 2 to 8 seconds (an
	// Atomic.Run every second).
	//
	// What it costs: as good as no throughput, since it is told in a
	// transaction of its own behind the commit. Measured with four listening
	// stores on two cores, claims with settlements ran at 0.92 and 1.04 times
	// the rate with 64 and 256 goroutines, and transactions of Atomic.Run at
	// 0.94 and 1.00. (Told in the transaction of the settlement, they ran at
	// 0.66 and 0.67, and Atomic.Run at 0.42 and 0.28: NOTIFY holds a lock of the
	// whole server until the commit is on the disk.)
	//
	// A pooler that gives each transaction another session, as PgBouncer in
	// transaction mode does, cannot carry it: Open is ErrUnsafe then.
	Notify bool

	// MaxIdleTx is how long a transaction of Atomic.Run may sit idle, because
	// its handler does something else or is frozen: 30 s by default. Then the
	// server ends it (idle_in_transaction_session_timeout), and it is rolled
	// back.
	MaxIdleTx time.Duration

	// clock is an SQL expression for the store's clock, in microseconds. For
	// tests.
	clock string
	// notifiedPoll is how long a waiting Atomic.Run sleeps that can be told. For
	// tests.
	notifiedPoll time.Duration
	// settleTry is how long one round trip of settlements may take. For tests.
	settleTry time.Duration
	// echo is how long to wait for the notification that a new listener sends
	// itself. For tests.
	echo time.Duration
}

// channel is what the settlements of a schema are told on; the names of
// channels are those of a database.
func (o *Options) channel() string {
	sum := sha256.Sum256([]byte(o.Schema))
	return "semel_" + hex.EncodeToString(sum[:16])
}

const maxTimeout = math.MaxInt32 * time.Millisecond

func (o *Options) withDefaults() (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	setDefault(&d.Schema, "semel")
	setDefault(&d.LockTimeout, 5*time.Second)
	setDefault(&d.Connections, 12)
	setDefault(&d.Flushers, max(1, min(4, d.Connections/3)))
	setDefault(&d.MaxBatch, 256)
	setDefault(&d.MaxIdleTx, 30*time.Second)
	setDefault(&d.clock, table.WallClock)
	setDefault(&d.notifiedPoll, time.Second)
	setDefault(&d.echo, 20*time.Second)
	setDefault(&d.settleTry, settleTry)
	switch {
	case len(d.Schema) > 63:
		return d, fmt.Errorf("pgstore: Options.Schema has %d bytes; PostgreSQL's limit is 63", len(d.Schema))
	case strings.ContainsAny(d.Schema, "\x00\n\r") || strings.Contains(d.Schema, "$$"):
		return d, fmt.Errorf("pgstore: Options.Schema is %q; it must not hold a line's end, a zero byte or $$", d.Schema)
	case d.LockTimeout > maxTimeout || d.MaxIdleTx > maxTimeout:
		return d, fmt.Errorf("pgstore: Options.LockTimeout is %v and MaxIdleTx %v; the server's limit is %v", d.LockTimeout, d.MaxIdleTx, maxTimeout)
	case d.LockTimeout < time.Millisecond:
		return d, fmt.Errorf("pgstore: Options.LockTimeout is %v; it must be at least 1ms", d.LockTimeout)
	case d.Connections < 0 || d.Connections > 1000:
		return d, fmt.Errorf("pgstore: Options.Connections is %d; it must be 1 to 1000", d.Connections)
	case d.Flushers < 0 || d.Flushers > max(1, d.Connections/3):
		return d, fmt.Errorf("pgstore: Options.Flushers is %d; it must be no more than a third of the %d Connections", d.Flushers, d.Connections)
	case d.MaxBatch < 0 || d.MaxBatch > 10_000:
		return d, fmt.Errorf("pgstore: Options.MaxBatch is %d; it must be 1 to 10000", d.MaxBatch)
	case d.Partitions < 0 || d.Partitions > schema.MaxPartitions:
		return d, fmt.Errorf("pgstore: Options.Partitions is %d; it must be 0 to %d", d.Partitions, schema.MaxPartitions)
	case d.MaxIdleTx < time.Millisecond:
		return d, fmt.Errorf("pgstore: Options.MaxIdleTx is %v; it must be at least 1ms", d.MaxIdleTx)
	}
	return d, nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
