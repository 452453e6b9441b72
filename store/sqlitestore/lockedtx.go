package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

// lockedTx changes records in a transaction that holds the write lock. now is the time at
// which it got the lock. Nobody else changes anything meanwhile, so it reads a record,
// applies the functions of package store, and writes it.
type lockedTx struct {
	db         executor
	now        time.Time
	sweptFence int64 // highest swept fence, as far as it was read
}

func (k *lockedTx) claim(ctx context.Context, p *store.Proposal) (store.Found, error) {
	for range 2 {
		r := p.Insert(k.now, uint64(k.sweptFence))
		inserted, err := k.insert(ctx, &r)
		if err != nil || inserted {
			return p.Found(&r, k.now), err
		}
		existing, err := k.read(ctx, p.Key)
		if !errors.Is(err, store.ErrNotFound) {
			return p.Found(existing, k.now), err
		}
		// There is no record, but a swept fence is higher: the clock was set
		// back.
		m, err := readMeta(ctx, k.db)
		if err != nil {
			return store.Found{}, err
		}
		k.sweptFence = m.sweptFence
	}
	return store.Found{}, errors.New("the record does not exist and cannot be inserted; is there a trigger on semel_ tables?")
}

func (k *lockedTx) insert(ctx context.Context, r *store.Record) (bool, error) {
	id := r.Key.ID()
	args, err := insertArgs(id[:], r)
	if err != nil {
		return false, err
	}
	if r.State == store.Started || r.State == store.Processing {
		changed, err := k.db.exec(ctx, stInsert, args...)
		return changed == 1, err
	}
	// What can be refused is refused before the first change, because others share the
	// transaction.
	replaced, err := replaceArgs(id[:], r)
	if err != nil {
		return false, err
	}
	changed, err := k.db.exec(ctx, stInsert, args...)
	if err == nil && changed == 1 {
		err = exactlyOne(k.db.exec(ctx, stReplace, replaced...))
	}
	return changed == 1, err
}

func (k *lockedTx) swap(ctx context.Context, seen store.Seen, p *store.Proposal) (store.Found, error) {
	if p.Key != seen.Key {
		return store.Found{Now: k.now}, errors.New("Swap: the proposal is for another key than what was seen")
	}
	r, err := k.read(ctx, seen.Key)
	if err != nil {
		return store.Found{Now: k.now}, err
	}
	if r.Seen() == seen {
		*r = p.Replace(r, k.now)
		if err = k.replace(ctx, r); err == nil && p.Restart {
			id := r.Key.ID()
			_, err = k.db.exec(ctx, stDropSteps, id[:])
		}
	}
	return p.Found(r, k.now), err
}

func (k *lockedTx) replace(ctx context.Context, r *store.Record) error {
	id := r.Key.ID()
	args, err := replaceArgs(id[:], r)
	if err != nil {
		return err
	}
	return exactlyOne(k.db.exec(ctx, stReplace, args...))
}

func (k *lockedTx) settle(ctx context.Context, l store.Lease, t *store.Settlement) error {
	// The columns that a settlement sets do not depend on the others.
	r := t.Apply(store.Record{}, k.now)
	id := l.Key.ID()
	args, err := settleArgs(id[:], &r, &l)
	if err != nil {
		return err
	}
	changed, err := k.db.exec(ctx, stSettle, args...)
	if err != nil || changed == 1 {
		return err
	}
	current, err := k.read(ctx, l.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.ErrLeaseLost
	case err != nil:
		return err
	case current.Lease() == l && t.Done(current):
		return nil
	}
	return store.ErrLeaseLost
}

func (k *lockedTx) renew(ctx context.Context, l store.Lease, d time.Duration) error {
	id := l.Key.ID()
	changed, err := k.db.exec(ctx, stRenew, store.Micros(k.now.Add(d)), store.Micros(k.now), id[:], l.Owner[:], int64(l.Fence))
	if err == nil && changed == 0 {
		return store.ErrLeaseLost
	}
	return err
}

// remove deletes the rows after and up to two row numbers that had expired at
// a time, with their steps, and keeps their highest fence, so that a key which is used again gets
// a higher fence, even if the clock was set back.
func (k *lockedTx) remove(ctx context.Context, after, upTo int64, at time.Time) (int, error) {
	if err := exactlyOne(k.db.exec(ctx, stRaise, after, upTo, store.Micros(at))); err != nil {
		return 0, err
	}
	if _, err := k.db.exec(ctx, stDeleteSteps, after, upTo, store.Micros(at)); err != nil {
		return 0, err
	}
	deleted, err := k.db.exec(ctx, stDelete, after, upTo, store.Micros(at))
	return int(deleted), err
}

// erase deletes a record that is as it was seen, with its steps, and keeps its fence.
func (k *lockedTx) erase(ctx context.Context, seen *store.Seen) error {
	r, err := k.read(ctx, seen.Key)
	if err != nil {
		return err
	}
	if r.Seen() != *seen {
		return store.ErrChanged
	}
	if err := exactlyOne(k.db.exec(ctx, stRaiseTo, int64(seen.Fence))); err != nil {
		return err
	}
	id := seen.Key.ID()
	if _, err := k.db.exec(ctx, stDropSteps, id[:]); err != nil {
		return err
	}
	return exactlyOne(k.db.exec(ctx, stErase, id[:]))
}

func (k *lockedTx) read(ctx context.Context, key store.Key) (*store.Record, error) {
	return read(ctx, k.db, key)
}

// read returns a key's record, or store.ErrNotFound.
func read(ctx context.Context, db executor, key store.Key) (*store.Record, error) {
	id := key.ID()
	rows, err := db.query(ctx, stSelect, id[:])
	if err != nil {
		return &store.Record{}, err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return &store.Record{}, err
		}
		return &store.Record{}, store.ErrNotFound
	}
	var w row
	if err := w.scan(rows); err != nil {
		return &store.Record{}, err
	}
	r, err := w.recordOf(key)
	return &r, err
}

// exactlyOne returns an error unless a statement changed exactly one row.
func exactlyOne(changed int64, err error) error {
	if err == nil && changed != 1 {
		return fmt.Errorf("a statement changed %d rows instead of 1; is there a trigger on semel_ tables?", changed)
	}
	return err
}

// meta is the one row of semel_meta.
type meta struct {
	store      string
	schema     int
	sweptFence int64
}

func readMeta(ctx context.Context, db executor) (meta, error) {
	rows, err := db.query(ctx, stMeta)
	if err != nil {
		return meta{}, err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return meta{}, err
		}
		return meta{}, fmt.Errorf("%w: the row of semel_meta is missing; restore it from a backup", ErrForeign)
	}
	var m meta
	err = m.scan(rows)
	return m, err
}

func (m *meta) scan(rows *sql.Rows) error {
	err := rows.Scan(&m.store, &m.schema, &m.sweptFence)
	if err == nil {
		return nil
	}
	if closed := rows.Err(); closed != nil { // see row.scan
		return closed
	}
	return fmt.Errorf("%w: the row of semel_meta: %w", ErrForeign, err)
}
