package pgstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/schema"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// Options configures a Store. A nil *Options and zero fields mean the defaults.
type Options struct {
	// Schema is the PostgreSQL schema that holds Semel's tables: "semel" by
	// default. The name is quoted, so its case counts.
	Schema string
	// NoMigrate makes Open and New fail with ErrSchema if the tables are missing or
	// old, instead of creating or updating them. See Migrate and Migrations.
	NoMigrate bool
	// RelaxedClaims lets the commit of a claim return before it is on disk, so that
	// claims of a Guard are faster. The commit of the settlement still waits, and
	// makes the claim durable, too. If the server crashes (not a client), the claims
	// of the last 600 ms may be lost (three times the server's wal_writer_delay). A
	// retry then runs the handler a second time, even while the first one runs; the
	// first call ends with semel.ErrLeaseLost. Reservations (Guard.Reserve) may be lost,
	// too: a call that was accepted then never runs, because its token is
	// semel.ErrExpired. Claims and reservations with the policy semel.Park are refused.
	// Transactions of an Atomic are not relaxed. Off by default.
	RelaxedClaims bool
	// LockTimeout is how long a change of a record waits if another transaction has
	// locked its row: 5 s by default. After that the change fails with ErrBusy. By default at
	// most 3 changes wait for locks at the same time, because each holds one of the
	// store's connections: Connections - 2*Flushers - 1, where the last one is for other
	// requests. Further changes queue for these places. If the
	// context of a change ends in the queue, the change fails with the context's error.
	LockTimeout time.Duration
	// Connections is how many connections the store opens at most for itself, apart
	// from the pool for the transactions of Atomic: 12 by default. Renewals of leases
	// use up to 4 more.
	Connections int
	// Flushers is how many round trips with claims may be in flight at the same time,
	// and also how many with settlements. Concurrent claims share a round trip, and so do
	// concurrent settlements. The limit is a third of Connections, and the default is
	// 4 or that limit, whichever is less. With RelaxedClaims it is at most 2 for claims.
	Flushers int
	// MaxBatch is the largest number of claims, or of settlements, in one round trip:
	// 256 by default.
	MaxBatch int

	// Partitions is the number of partitions, by hash of the record's id, with which
	// the table of records is created. Use it if vacuuming one large table takes too
	// long; it does not make the store faster. 0, the default, creates a table
	// without partitions; the limit is 256. The number is fixed when the tables are
	// created. If the tables exist, 0 fits any number of partitions; with another value
	// that differs from their number, Open fails with ErrSchema. See docs/postgres.md.
	Partitions int
	// Notify wakes a call that waits for a running duplicate (Call.Wait) as soon as
	// the duplicate ends, by LISTEN and NOTIFY, so that it does not poll. Off by
	// default. All processes that share the schema must set it. It takes up to 5
	// more connections. It does not work through a pooler in transaction mode, such
	// as PgBouncer: Open then fails with ErrUnsafe. See docs/postgres.md for cost and
	// limits.
	Notify bool

	// MaxIdleTx is how long a transaction that an Atomic or a pgkafka.Watermark has begun
	// may be idle, because its handler does other work or hangs: 30 s by default. After that the
	// server closes the connection, which rolls the transaction back
	// (idle_in_transaction_session_timeout).
	MaxIdleTx time.Duration
	// StoreTimeout limits each request of package pgkafka, on which kafkapg.ServeOffsets
	// and all crash markers rest: 5 s by default. A connection of the pool and BEGIN are
	// one request, and so are a change of the watermark, COMMIT, and the question what
	// became of a COMMIT without an answer. It does not limit the statements of a handler.
	// Raise it if COMMIT takes longer, for example because of deferred triggers.
	// semel.Options.StoreTimeout is the limit of the requests of a Guard or an Atomic.
	StoreTimeout time.Duration

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

// leastStoreTimeout leaves some milliseconds for the wait for a locked row.
const leastStoreTimeout = 10 * time.Millisecond

func (o *Options) withDefaults() (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	d.Schema = cmp.Or(d.Schema, "semel")
	d.LockTimeout = cmp.Or(d.LockTimeout, 5*time.Second)
	d.Connections = cmp.Or(d.Connections, 12)
	d.Flushers = cmp.Or(d.Flushers, max(1, min(4, d.Connections/3)))
	d.MaxBatch = cmp.Or(d.MaxBatch, 256)
	d.MaxIdleTx = cmp.Or(d.MaxIdleTx, 30*time.Second)
	d.StoreTimeout = cmp.Or(d.StoreTimeout, defaultStoreTimeout)
	d.clock = cmp.Or(d.clock, table.WallClock)
	d.notifiedPoll = cmp.Or(d.notifiedPoll, time.Second)
	d.echo = cmp.Or(d.echo, 20*time.Second)
	d.settleTry = cmp.Or(d.settleTry, settleTry)
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
	case d.StoreTimeout < leastStoreTimeout:
		return d, fmt.Errorf("pgstore: Options.StoreTimeout is %v; it must be at least %v", d.StoreTimeout, leastStoreTimeout)
	}
	return d, nil
}

// RequiresSynchronousStandby reports whether the setting synchronous_standby_names is not
// empty, so that commits wait for a standby. If it is empty, a failover to a standby can
// lose the last commits. Store.Check does not report an empty setting, because there is no
// failover if the server has no standby.
func RequiresSynchronousStandby(ctx context.Context, s *Store) (required bool, err error) {
	if s.closed.Load() {
		return false, ErrClosed
	}
	err = s.ownPool.QueryRow(ctx, "SELECT current_setting('synchronous_standby_names') <> ''").Scan(&required)
	return required, pgwire.Explain("read the settings", err)
}

// part is one partition of the table of records, or the whole table if it has none.
// A row's place (ctid) is unique within a part only, so statements that use places
// name the part.
type part struct {
	name                             string // as in SQL
	findExpired, deleteExpired, list string // statements
}

func (s *Store) partsOf(tables []string) []part {
	parts := make([]part, len(tables))
	for i, name := range tables {
		in := strings.NewReplacer("{part}", name, "{part name}", table.Literal(name))
		parts[i] = part{name, in.Replace(s.sql.FindExpired), in.Replace(s.sql.DeleteExpired), in.Replace(s.sql.List)}
	}
	return parts
}

// isGone reports whether the partition of a statement was dropped since the store was opened.
func (s *Store) isGone(err error) bool {
	return pgwire.Code(err) == pgwire.UndefinedTable && len(s.parts) > 1
}

// notesGone is isGone, and notes the partition for the end of the sweep's pass.
func (s *Store) notesGone(part int, err error) bool {
	if !s.isGone(err) {
		return false
	}
	s.gone.Store(&s.parts[part].name)
	return true
}

// errGone is the error at the end of a sweep or list that has found a partition gone.
func errGone(name string) error {
	return fmt.Errorf("the partition %s was dropped since the store was opened, perhaps with others; records of the remaining ones were read; open the store again", name)
}
