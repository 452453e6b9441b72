package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/notify"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// Store keeps records in PostgreSQL. Safe for concurrent use. Make it with
// [Open] or [New], and close it. Most applications use it only through a semel.Guard or
// an [Atomic].
type Store struct {
	journal
	options            Options
	sql                *table.Statements
	txSQL              *table.Statements // in transactions, whose commits must never be relaxed
	shortWaitSession   *session          // waits for table.ShortLockTimeout
	waitSession        *session          // waits for Options.LockTimeout
	idleTimeout        string            // Options.MaxIdleTx as the server takes it
	id                 pgtype.UUID       // semel_meta.store, which identifies the schema
	appPool            *pgxpool.Pool     // of Atomic.Run; see ownsAppPool
	ownPool            *pgxpool.Pool     // claims, settlements, reads
	renewalPool        *pgxpool.Pool     // renewals only: one connection and spare ones
	claims             *claimBatcher
	settles            *settleBatcher
	replays            *replayBatcher // lookups of Atomic.Run before a transaction
	confirms           *confirmBatcher
	commits            pgwire.CommitWatch     // of the connections that the store opens
	listener           *notify.Listener       // with Options.Notify, or nil
	parts              []part                 // the partitions, or the whole table
	gone               atomic.Pointer[string] // a partition that a sweep has not found
	ownsAppPool        bool                   // the store made appPool
	hasPlannerSettings bool                   // its connections have table.PlannerSettings
	waitSlots          chan struct{}          // one element for each call in waitForLock
	lockedRows         pgwire.LockedRows      // of claims
	closed             atomic.Bool
}

var _ interface {
	store.Store
	store.Lister
	store.Migrator
	store.Checker
	store.Waiter
	store.Journal
	store.Timers
	store.Eraser
	store.Confirmer
	store.Scrubber
	store.Receiver
} = (*Store)(nil)

// Claim inserts a record for a key that has none, or returns the record that is there. It
// takes one round trip, which concurrent claims share. With Options.RelaxedClaims it
// refuses the policy semel.Park. It implements store.Store.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if err := s.checkProposal(&p); err != nil {
		return store.Found{}, err
	}
	if p.State != store.Started && p.State != store.Processing {
		r, err := s.waitSession.claim(ctx, &p)
		return s.confirmed(ctx, "claim", r, err)
	}
	start, hash := time.Now(), table.KeyHash(table.ID(p.Key))
	r, err := s.claims.Do(ctx, &p)
	if errors.Is(err, errSendAlone) {
		if r, err = s.shortWaitSession.claim(ctx, &p); pgwire.Code(err) == pgwire.LockNotAvailable {
			err = errRowLocked
		}
	}
	if errors.Is(err, errRowLocked) {
		s.lockedRows.Found(hash)
		err = s.waitForLock(ctx, func() (err error) {
			r, err = s.waitSession.claim(ctx, &p)
			return err
		})
	}
	if err != nil && ctx.Err() != nil && s.lockedRows.Since(hash, start) {
		err = fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return s.confirmed(ctx, "claim", r, err)
}

// waitForLock runs fn, which may wait for a lock while it holds a connection. The
// number of callers that do so at the same time is limited, so that connections remain
// for others.
func (s *Store) waitForLock(ctx context.Context, fn func() error) error {
	select {
	case s.waitSlots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.waitSlots }()
	return fn()
}

// Swap replaces a record that is still as the caller has seen it, for example to take
// over an expired lease. It takes one round trip. If the record has changed, Swap takes
// two, and returns the current record. It implements store.Store.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := s.checkProposal(&p); err != nil {
		return store.Found{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Found{}, pgwire.Explain("swap", err)
	}
	r, err := s.shortWaitSession.swap(ctx, seen, &p)
	if pgwire.Code(err) == pgwire.LockNotAvailable {
		err = s.waitForLock(ctx, func() (err error) {
			r, err = s.waitSession.swap(ctx, seen, &p)
			return err
		})
	}
	f, err := s.confirmed(ctx, "swap", r, err)
	if err == nil && f.Won && p.State != store.Started && p.State != store.Processing {
		s.notifyEnd(table.ID(p.Key))
	}
	return f, err
}

// Settle stores the result of the caller's claim, or returns store.ErrLeaseLost if the
// claim does not hold any more. It takes one round trip, which concurrent settlements
// share. It implements store.Store.
func (s *Store) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	if s.closed.Load() {
		return ErrClosed
	}
	r, err := newSettleRequest(&l, &t)
	if err != nil {
		return pgwire.Explain("settle", err)
	}
	if err = errSendAlone; t.State != store.Unknown { // a batch does not write semel_doubt
		_, err = s.settles.Do(ctx, r)
	}
	if errors.Is(err, errSendAlone) {
		if err = s.shortWaitSession.settle(ctx, r); pgwire.Code(err) == pgwire.LockNotAvailable {
			err = errRowLocked
		}
	}
	switch {
	case errors.Is(err, errRowLocked):
		err = s.waitForLock(ctx, func() error { return s.waitSession.settle(ctx, r) })
	case errors.Is(err, errNotHeld):
		err = s.waitSession.settledBefore(ctx, r)
	}
	if errors.Is(err, errSettledBefore) {
		err = s.confirm(ctx)
	}
	if err == nil {
		s.notifyEnd(r.id)
	}
	return pgwire.Explain("settle", err)
}

// Get reads the record of a key. It takes one round trip, and does not wait for locks. It
// implements store.Store.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Found, error) {
	if s.closed.Load() {
		return store.Found{}, ErrClosed
	}
	r, err := s.waitSession.get(ctx, key)
	return s.confirmed(ctx, "get", r, err)
}

// checkProposal refuses a proposal that the store cannot keep.
func (s *Store) checkProposal(p *store.Proposal) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if s.options.RelaxedClaims && p.Policy == store.Park && (p.State == store.Started || p.State == store.Processing) {
		return errors.New("pgstore: policy park needs durable claims: a crash of the server could lose the claim, and the effect would happen twice; open the store without Options.RelaxedClaims")
	}
	return nil
}

func init() {
	pgwire.DatabaseOf = func(st any) *pgwire.Database { return st.(*Store).database() }
}

// database is for packages pgkafka and pgoutbox, which have tables in the store's schema.
func (s *Store) database() *pgwire.Database {
	return &pgwire.Database{
		App: s.appPool, Own: s.ownPool, Schema: s.quoted(), Clock: s.options.clock,
		LockTimeout: s.options.LockTimeout, MaxIdleTx: s.options.MaxIdleTx, StoreTimeout: s.options.StoreTimeout, Closed: s.closed.Load,
		Commits: &s.commits, Confirm: s.confirm, SeesWarnings: s.ownsAppPool,
	}
}

// Errors that a caller can act upon. Find them with errors.Is; the driver's
// *pgconn.PgError is in the chain too.
var (
	// ErrBusy: another transaction has locked the row for longer than
	// Options.LockTimeout, or until the context of a claim ended; a renewal fails with
	// ErrBusy at once. Nothing was changed.
	// Call again, and keep transactions short.
	ErrBusy = pgwire.ErrBusy
	// ErrFull: the disk of the server is full. Nothing was changed.
	ErrFull = pgwire.ErrFull
	// ErrSchema: the tables are missing, or they are older or newer than this version
	// of the package needs. Call Migrate, or update the package.
	ErrSchema = pgwire.ErrSchema
	// ErrForeign: the transaction is of another database, or schema, than the
	// store.
	ErrForeign = pgwire.ErrForeign
	// ErrUnsafe: a setting of the server, or a pooler, prevents the store from keeping
	// its promises. The error names the setting or the pooler's fault.
	ErrUnsafe = pgwire.ErrUnsafe
	// ErrClosed: the store was closed.
	ErrClosed = pgwire.ErrClosed
)

// session sends single statements, to a pool or in a transaction.
type session struct {
	db          pgwire.Execer
	sql         *table.Statements
	strict      *table.Statements
	lockTimeout *string             // as the server takes it; nil: as it is set
	commits     *pgwire.CommitWatch // nil in a transaction
	inTx        bool                // a failed statement ends the transaction
}

// newSession is a session on the store's own connections.
func (s *Store) newSession(wait string) *session {
	return &session{db: s.ownPool, sql: s.sql, strict: s.txSQL, lockTimeout: &wait, commits: &s.commits}
}

// retry sends a statement again if the server refused it because of a concurrent
// transaction. A refused statement has changed nothing.
func (s *session) retry(fn func() error) error {
	if s.inTx {
		return fn() // only the whole transaction can run again
	}
	return s.commits.Run(func() error { return pgwire.Retry(fn) })
}

// get reads a record.
func (s *session) get(ctx context.Context, key store.Key) (r reading, err error) {
	var now int64
	var hasStandby bool
	var w table.Row
	err = s.db.QueryRow(ctx, s.sql.Get, table.ID(key)).Scan(w.Fields(&now, &hasStandby)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, store.ErrNotFound
	}
	if err != nil {
		return r, err
	}
	r.Found, err = w.Found(key, now)
	r.unconfirmed = hasStandby && r.Record.IsAnswer()
	return r, err
}

// reading is a record as a statement has found or written it.
type reading struct {
	store.Found
	// unconfirmed: the record answers the caller (Record.IsAnswer), and was not written by this
	// statement. The commit that wrote it may be visible although the synchronous
	// standby does not have it, because somebody cancelled its wait. See confirm.
	unconfirmed bool
}

// confirmed is the record of r, after it is confirmed. If a record that answers a caller cannot
// be confirmed, it comes with the error and without its outcome, so that a Guard with
// UnprotectedOnOutage does not run the handler.
func (s *Store) confirmed(ctx context.Context, what string, r reading, err error) (store.Found, error) {
	if err != nil {
		return store.Found{}, pgwire.Explain(what, err)
	}
	if r.unconfirmed {
		if err := s.confirm(ctx); err != nil {
			if !r.Record.IsAnswer() || r.Won && r.Record.State == store.Processing {
				return store.Found{}, pgwire.Explain(what, err)
			}
			r.Record.Outcome = store.Outcome{}
			return r.Found, pgwire.Explain(what, err)
		}
	}
	return r.Found, nil
}
