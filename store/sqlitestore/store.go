package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

// Store keeps records in an SQLite file. It is safe for concurrent use, also by
// several processes of one machine. Make it with [Open], and close it.
type Store struct {
	opt  Options
	path string
	id   string // of the database: semel_meta.store
	// identity is that of the file.
	identity *identity
	writer   *writer
	reads    *sql.DB
	stmts    *prepared // of reads
	gate     *gate
	txs      *sql.DB // of Atomic.Run
	closed   atomic.Bool

	sweepWindow int // the most rows that a step of a sweep reads; tests change it

	needsScrub atomic.Bool // records were deleted, and their bytes may still be in the log

	closing sync.Mutex // held by Close
}

var _ interface {
	store.Store
	store.Lister
	store.Migrator
	store.Checker
	store.Journal
	store.Timers
	store.Eraser
	store.Scrubber
	store.Receiver
} = (*Store)(nil)

// Claim implements store.Store. Duplicates do not wait for a handler's transaction, and
// do not fail because another process holds the write lock: after a second, or half of
// the time that ctx has, their record is read without it.
func (s *Store) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if s.gate.handlerInside() {
		if f, err := s.look(ctx, &p); !errors.Is(err, store.ErrNotFound) {
			return f, err
		}
	}
	soon, cancel := context.WithTimeout(ctx, lookAfter(ctx))
	defer cancel()
	claim := func(k *lockedTx) (store.Found, error) { return k.claim(background, &p) }
	f, err := s.write(soon, claim)
	late := soon.Err() != nil
	if err == nil || !late && !errors.Is(err, ErrBusy) {
		return f, err
	}
	found, lookErr := s.look(ctx, &p)
	if lookErr == nil || errors.Is(lookErr, store.ErrCorrupt) {
		return found, lookErr
	}
	if !late {
		return f, err
	}
	f, err = s.write(ctx, claim) // the key is new, and waits for the lock
	if err != nil && ctx.Err() != nil && errors.Is(lookErr, store.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrBusy, err) // the file was read meanwhile
	}
	return f, err
}

// maxLookAfter is the longest time that a duplicate waits for a transaction of another
// process.
const maxLookAfter = time.Second

// lookAfter is how long a claim waits for the write lock before it looks for a record.
// It leaves half of the time that ctx has to a new key.
func lookAfter(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(maxLookAfter, time.Until(end)/2)
	}
	return maxLookAfter
}

// look returns the record of p's key, or store.ErrNotFound.
func (s *Store) look(ctx context.Context, p *store.Proposal) (store.Found, error) {
	f, err := s.Get(ctx, p.Key)
	if err != nil {
		return f, err
	}
	return p.Found(&f.Record, f.Now), nil
}

// Swap implements store.Store.
func (s *Store) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	return s.write(ctx, func(k *lockedTx) (store.Found, error) { return k.swap(background, seen, &p) })
}

// write runs fn by the writer. After an error that is not fn's it does not read the
// found record, because fn may still run.
func (s *Store) write(ctx context.Context, fn func(k *lockedTx) (store.Found, error)) (store.Found, error) {
	f := new(store.Found)
	err := s.do(ctx, func(k *lockedTx) (err error) {
		*f, err = fn(k)
		return err
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.Found{}, err
	}
	return *f, err
}

// Renew implements store.Store. Renewals overtake queued changes.
func (s *Store) Renew(ctx context.Context, held []store.Lease, d time.Duration) ([]error, error) {
	errs := make([]error, len(held))
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	err := s.writer.urgent(ctx, func(k *lockedTx) error {
		for i, l := range held {
			if errs[i] = k.renew(background, l, d); broken(errs[i]) {
				return errs[i]
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return errs, nil
}

// Settle implements store.Store.
func (s *Store) Settle(ctx context.Context, l store.Lease, t store.Settlement) error {
	return s.do(ctx, func(k *lockedTx) error { return k.settle(background, l, &t) })
}

// do runs c by the writer.
func (s *Store) do(ctx context.Context, c change) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.writer.do(ctx, c)
}

// ready refuses calls on a closed store, and writes that would wait for the end of
// the caller's own transaction.
func (s *Store) ready(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	if _, ok := s.openTx(ctx); ok {
		return store.WithExtent(errors.New("sqlitestore: this write would wait for the end of the transaction that its own handler holds; use Atomic.Run or Atomic.In"), store.ExtentCall)
	}
	return ctx.Err()
}

// Get implements store.Store. It does not wait for writers. A read that has
// begun is short, and not interrupted by ctx.
func (s *Store) Get(ctx context.Context, key store.Key) (store.Found, error) {
	if err := ctx.Err(); err != nil {
		return store.Found{}, err
	}
	if s.closed.Load() {
		return store.Found{}, ErrClosed
	}
	if err := s.identity.checkForRead(); err != nil {
		return store.Found{}, explain("read", err)
	}
	r, err := read(background, s.stmts, key)
	f := store.Found{Record: *r, Now: s.clock()}
	return f, explain("read", err)
}

func (s *Store) clock() time.Time { return clock(s.opt.Now()) }

// Path is the absolute path of the file, for package sqliteoutbox.
func (s *Store) Path() string { return s.path }

// CheckFile returns ErrUnsafe if the file was removed or replaced since Open, for package
// sqliteoutbox. It takes some microseconds.
func (s *Store) CheckFile() error { return s.identity.check() }
