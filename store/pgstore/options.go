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
	// NoMigrate makes Open and New fail with ErrSchema if the tables are missing or
	// old, instead of creating them. See Migrate and Migrations.
	NoMigrate bool
	// RelaxedClaims makes the commit of a claim return before it is on disk. The
	// commit of a settlement still waits, and makes the claim durable too. A crash of
	// the server (not of a client) may lose the claims of the last 600 ms (three
	// times the server's wal_writer_delay). A retry then runs the handler a second time, even
	// while the first one runs; the settlement of the first one is ErrLeaseLost.
	// Claims with policy Park are refused. Off by default.
	RelaxedClaims bool
	// LockTimeout is how long a change waits for a row that another transaction holds:
	// 5 s by default. After that it is ErrBusy. A few calls wait at a time; the others
	// queue before them until their contexts end.
	LockTimeout time.Duration
	// Connections is how many connections the store opens for itself, apart from the
	// pool of New: 12 by default. Renewals use one more, or up to 4 while one of those
	// hangs.
	Connections int
	// Flushers is how many round trips with claims may be in flight at the same time,
	// and how many with settlements: 4 by default, at most a third of Connections. For
	// claims with RelaxedClaims it is at most 2.
	Flushers int
	// MaxBatch is the largest number of claims, or of settlements, in a round trip:
	// 256 by default.
	MaxBatch int

	// Partitions is the number of partitions, by hash of the id, in which the table of
	// records is created. Use it if vacuuming one large table takes too long; it does
	// not make the store faster. 0, the default, creates one table; at most 256. The
	// number is fixed when the tables are created. For existing tables, 0 accepts any
	// number, and another value must be theirs (ErrSchema). See docs/postgres.md.
	Partitions int
	// Notify notifies calls that wait for a running duplicate of its end (LISTEN,
	// NOTIFY), so that they do not poll. Off by default. All processes that share the
	// schema must set it. It takes two connections more, or up to 5 while one of them
	// hangs. It needs connections without a pooler in transaction mode: with
	// PgBouncer, Open returns ErrUnsafe. See docs/postgres.md for cost and limits.
	Notify bool

	// MaxIdleTx is how long a transaction of Atomic.Run may be idle, because its
	// handler does other work or is frozen: 30 s by default. After that the server
	// rolls it back (idle_in_transaction_session_timeout).
	MaxIdleTx time.Duration

	// clock is an SQL expression for the store's clock, in microseconds. For
	// tests.
	clock string
	// notifiedPoll is the poll interval of an Atomic.Run that waits for a
	// notification. For tests.
	notifiedPoll time.Duration
	// settleTry is how long one round trip of settlements may take. For tests.
	settleTry time.Duration
	// echo is how long to wait for the notification that a new listener sends
	// itself. For tests.
	echo time.Duration
}

// channel is the notification channel of a schema. Channel names are shared by all
// schemas of a database.
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
		return d, fmt.Errorf("pgstore: Options.Schema is %q; it must not contain a line break, a zero byte or $$", d.Schema)
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
