package pgstore

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/notify"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// Store keeps records in PostgreSQL. Safe for concurrent use. Make it with
// [Open] or [New], and close it.
type Store struct {
	opt      Options
	sql      *table.Statements
	txSQL    *table.Statements // in transactions, which also write what is the application's
	quick    *session          // for the lanes
	patient  *session          // for who waits by itself
	idle     string            // Options.MaxIdleTx, as the server takes it
	id       pgtype.UUID       // of the schema: semel_meta.store
	app      *pgxpool.Pool     // of Atomic.Run; the caller's, or nil until it is needed
	own      *pgxpool.Pool     // claims, settlements, reads
	renewal  *pgxpool.Pool     // one connection, which nothing else may hold; and spare ones
	claims   *claimLane
	settles  *settleLane
	replays  *replayLane      // lookups of Atomic.Run without a transaction
	listener *notify.Listener // of Options.Notify, or nil
	parts    []part           // the table, or its partitions
	opened   bool             // the store made app
	steady   bool             // its connections have steadySettings, so a batch needs no guard
	alone    chan struct{}    // a place for each who may wait for a lock at a time
	closed   atomic.Bool
}

var _ interface {
	store.Store
	store.Lister
	store.Migrator
	store.Checker
	store.Waiter
} = (*Store)(nil)

// Claim implements store.Store in one round trip, which concurrent claims
// share. It refuses policy Park under Options.RelaxedClaims.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if err := s.ready(&p); err != nil {
		return store.Found{}, err
	}
	if p.State != store.Started && p.State != store.Processing {
		f, err := s.patient.claim(ctx, &p)
		return f, pgwire.Explain("claim", err)
	}
	f, err := s.claims.Do(ctx, &p)
	if errors.Is(err, errAlone) {
		if f, err = s.quick.claim(ctx, &p); pgwire.Code(err) == pgwire.LockNotAvailable {
			err = errLocked
		}
	}
	if errors.Is(err, errLocked) {
		err = s.waiting(ctx, func() (err error) {
			f, err = s.patient.claim(ctx, &p)
			return err
		})
	}
	return f, pgwire.Explain("claim", err)
}

// waiting runs fn, which may wait for a lock with a connection in its hand.
// Only so many do that at once, that some connections are left for the others.
func (s *Store) waiting(ctx context.Context, fn func() error) error {
	select {
	case s.alone <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.alone }()
	return fn()
}

// Swap implements store.Store in one round trip, and one more if it loses.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	if err := s.ready(&p); err != nil {
		return store.Found{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Found{}, pgwire.Explain("swap", err)
	}
	f, err := s.quick.swap(ctx, seen, &p)
	if pgwire.Code(err) == pgwire.LockNotAvailable {
		err = s.waiting(ctx, func() (err error) {
			f, err = s.patient.swap(ctx, seen, &p)
			return err
		})
	}
	if err == nil && f.Won && p.State != store.Started && p.State != store.Processing {
		s.ended(table.ID(p.Key))
	}
	return f, pgwire.Explain("swap", err)
}

// Settle implements store.Store in one round trip, which concurrent
// settlements share.
func (s *Store) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	if s.closed.Load() {
		return ErrClosed
	}
	r, err := newSettleRequest(&l, &t)
	if err != nil {
		return pgwire.Explain("settle", err)
	}
	_, err = s.settles.Do(ctx, r)
	if errors.Is(err, errAlone) {
		if err = s.quick.settle(ctx, r); pgwire.Code(err) == pgwire.LockNotAvailable {
			err = errLocked
		}
	}
	switch {
	case errors.Is(err, errLocked):
		err = s.waiting(ctx, func() error { return s.patient.settle(ctx, r) })
	case errors.Is(err, errNotHeld):
		err = s.patient.settledBefore(ctx, r)
	}
	if err == nil {
		s.ended(r.id)
	}
	return pgwire.Explain("settle", err)
}

// Get implements store.Store. It waits for no lock.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Found, error) {
	if s.closed.Load() {
		return store.Found{}, ErrClosed
	}
	f, err := s.patient.get(ctx, key)
	return f, pgwire.Explain("get", err)
}

// ready refuses what cannot be kept.
func (s *Store) ready(p *store.Proposal) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if s.opt.RelaxedClaims && p.Policy == store.Park && (p.State == store.Started || p.State == store.Processing) {
		return errors.New("pgstore: a claim with policy park and Options.RelaxedClaims: a crash of the server could lose it, and the effect happen twice; open the store without RelaxedClaims")
	}
	return nil
}

// Database gives package pgkafka access to its tables, which are in the schema of the
// store. Its type is internal; applications have no use for it.
func (s *Store) Database() *pgwire.Database {
	return &pgwire.Database{
		App: s.app, Own: s.own, Schema: s.quoted(), Clock: s.opt.clock,
		LockTimeout: s.opt.LockTimeout, MaxIdleTx: s.opt.MaxIdleTx, Closed: s.closed.Load,
	}
}

// Errors that a caller can act upon. Find them with errors.Is; the driver's
// *pgconn.PgError is in the chain too.
var (
	// ErrBusy: another transaction held the row for longer than
	// Options.LockTimeout, or at all where the store does not wait (a renewal).
	// Nothing was changed. Call again, and keep transactions short.
	ErrBusy = pgwire.ErrBusy
	// ErrFull: the server has no room on its disk. Nothing was changed.
	ErrFull = pgwire.ErrFull
	// ErrSchema: the tables are missing, older or newer than this version of the
	// package needs. Migrate, or update the package.
	ErrSchema = pgwire.ErrSchema
	// ErrForeign: the transaction is of another database, or schema, than the
	// store.
	ErrForeign = pgwire.ErrForeign
	// ErrUnsafe: a setting does not let the store keep its promises.
	ErrUnsafe = pgwire.ErrUnsafe
	// ErrClosed: the store was closed.
	ErrClosed = pgwire.ErrClosed
)

// session is where single statements are sent to: a pool, or a transaction.
type session struct {
	db     pgwire.Execer
	sql    *table.Statements
	strict *table.Statements
	wait   *string // for a lock, as the server takes it; nil: as it is set
	inTx   bool    // a statement that fails ends the transaction
}

// newSession is one on the store's own connections.
func (s *Store) newSession(wait string) *session {
	return &session{db: s.own, sql: s.sql, strict: s.txSQL, wait: &wait}
}

// retry sends a statement again that the server refused, whole, for what
// another did at the same time: it was not carried out.
func (s *session) retry(fn func() error) error {
	if s.inTx {
		return fn() // only the whole transaction can be run again
	}
	return pgwire.Retry(fn)
}

// get reads a record.
func (s *session) get(ctx context.Context, key store.Key) (store.Found, error) {
	var now int64
	var w table.Row
	err := s.db.QueryRow(ctx, s.sql.Get, table.ID(key)).Scan(w.Fields(&now)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Found{}, store.ErrNotFound
	}
	if err != nil {
		return store.Found{}, err
	}
	return w.Found(key, now)
}
