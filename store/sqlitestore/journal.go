package sqlitestore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

// The steps of a record are rows of semel_step. They are deleted in the transaction
// that deletes or restarts their record, and read with its time of creation, so
// that a record which somebody deleted by hand leaves no steps to another.

// RecordStep implements store.Journal.
func (s *Store) RecordStep(ctx context.Context, l store.Lease, step store.Step) error {
	return s.do(ctx, func(k *lockedTx) error { return k.recordStep(background, &l, &step, false) })
}

// Steps implements store.Journal. It does not wait for writers.
func (s *Store) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.closed.Load() {
		return nil, ErrClosed
	}
	steps, err := readSteps(background, s.stmts, &l)
	return steps, explain("read steps", err)
}

// recordStep inserts a step. If onlyNew, a step that is there already is another
// transaction's.
func (k *lockedTx) recordStep(ctx context.Context, l *store.Lease, step *store.Step, onlyNew bool) error {
	data := store.EncodeStep(step)
	if len(data) > maxOutcome {
		return fmt.Errorf("%w: %d bytes; the limit is %d", store.ErrTooLarge, len(data), maxOutcome)
	}
	id := l.Key.ID()
	changed, err := k.db.exec(ctx, stRecordStep, step.Name, store.Micros(k.now), data, id[:], l.Owner[:], int64(l.Fence))
	if err != nil || changed == 1 {
		return err
	}
	r, err := k.read(ctx, l.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.ErrLeaseLost
	case err != nil:
		return err
	case r.Lease() != *l || r.State != store.Processing:
		return store.ErrLeaseLost
	case onlyNew:
		return store.ErrStepRecorded
	}
	steps, err := readSteps(ctx, k.db, l)
	if err != nil {
		return err
	}
	for i := range steps {
		if steps[i].Name == step.Name {
			return store.SameStep(&steps[i], step)
		}
	}
	return errors.New("the step does not exist and cannot be inserted; is there a trigger on semel_ tables?")
}

// readSteps returns the steps of a lease's record. A record without steps has one
// row of nulls.
func readSteps(ctx context.Context, db executor, l *store.Lease) ([]store.Step, error) {
	id := l.Key.ID()
	rows, err := db.query(ctx, stSteps, id[:], l.Owner[:], int64(l.Fence))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var steps []store.Step
	there := false
	for rows.Next() {
		var name *string
		var recorded *int64
		var data []byte
		if err := rows.Scan(&name, &recorded, &data); err != nil {
			return nil, err
		}
		there = true
		if name == nil {
			continue
		}
		step, err := store.DecodeStep(*name, store.Time(*recorded), data)
		if err != nil {
			return nil, fmt.Errorf("%w: step %q of semel_step", err, *name)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if !there {
		return nil, store.ErrLeaseLost
	}
	return steps, nil
}

// RecordStep implements store.Journal.
func (t *storeTx) RecordStep(ctx context.Context, l store.Lease, step store.Step) error {
	k, err := t.lock(ctx)
	if err == nil {
		err = k.recordStep(ctx, &l, &step, true)
	}
	return explain("record a step in a transaction", err)
}

// Steps implements store.Journal. It takes the write lock, so that no takeover
// comes between the read and the commit.
func (t *storeTx) Steps(ctx context.Context, l store.Lease) (steps []store.Step, err error) {
	if _, err = t.lock(ctx); err == nil {
		steps, err = readSteps(ctx, t.db, &l)
	}
	return steps, explain("read steps in a transaction", err)
}

// RecordStep implements store.Journal.
func (t *runTx) RecordStep(ctx context.Context, l store.Lease, step store.Step) error {
	if err := t.begin(); err != nil {
		return err
	}
	return t.inner.(store.Journal).RecordStep(ctx, l, step)
}

// Steps implements store.Journal.
func (t *runTx) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	if err := t.begin(); err != nil {
		return nil, err
	}
	return t.inner.(store.Journal).Steps(ctx, l)
}

// SetTimer implements store.Timers.
func (s *Store) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	var set bool // no named result, because the function may still run after an error
	err := s.do(ctx, func(w *lockedTx) (err error) {
		set, err = w.setTimer(background, &k, &seen, &next, wait)
		return err
	})
	if err != nil {
		return false, err
	}
	return set, nil
}

func (k *lockedTx) setTimer(ctx context.Context, key *store.Key, seen, next *store.Owner, wait time.Duration) (bool, error) {
	id, due := key.ID(), store.Micros(k.now.Add(wait))
	if *seen == (store.Owner{}) {
		return true, exactlyOne(k.db.exec(ctx, stSetTimer, id[:], key.Operation, key.Tenant, key.Value, next[:], due))
	}
	changed, err := k.db.exec(ctx, stMoveTimer, next[:], due, id[:], seen[:])
	if err != nil || changed == 1 {
		return changed == 1, err
	}
	rows, err := k.db.query(ctx, stTimerVersion, id[:])
	if err != nil {
		return false, err
	}
	defer rows.Close()
	var version []byte
	for rows.Next() {
		if err := rows.Scan(&version); err != nil {
			return false, err
		}
	}
	return bytes.Equal(version, next[:]), rows.Err()
}

// DropTimer implements store.Timers.
func (s *Store) DropTimer(ctx context.Context, k store.Key, seen store.Owner) error {
	return s.do(ctx, func(w *lockedTx) error {
		id := k.ID()
		_, err := w.db.exec(background, stDropTimer, id[:], seen[:])
		return err
	})
}

// DueTimers implements store.Timers. It does not wait for writers. With the error of a timer
// that cannot be read it returns the others.
func (s *Store) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	if err := ctx.Err(); err != nil {
		return nil, time.Time{}, err
	}
	if s.closed.Load() {
		return nil, time.Time{}, ErrClosed
	}
	now := s.clock()
	due, err := s.dueTimers(operation, now.Add(within), limit)
	return due, now, explain("read timers", err)
}

func (s *Store) dueTimers(operation string, until time.Time, limit int) ([]store.Timer, error) {
	rows, err := s.stmts.query(background, stDueTimers, operation, store.Micros(until))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var due []store.Timer
	var unreadable error // the first one
	for len(due) < limit && rows.Next() {
		t := store.Timer{Key: store.Key{Operation: operation}}
		var version []byte
		var micros int64
		if err := rows.Scan(&t.Key.Tenant, &t.Key.Value, &version, &micros); err != nil {
			return nil, err
		}
		if len(version) != len(t.Version) {
			unreadable = cmp.Or(unreadable, fmt.Errorf("%w: a version of semel_timer has %d bytes", store.ErrCorrupt, len(version)))
			continue
		}
		t.Version, t.Due = store.Owner(version), store.Time(micros)
		due = append(due, t)
	}
	return due, cmp.Or(rows.Err(), unreadable)
}

// Receive implements store.Receiver.
func (s *Store) Receive(ctx context.Context, r store.Record, steps []store.Step) (store.Found, error) {
	return s.write(ctx, func(k *lockedTx) (store.Found, error) { return k.receive(background, &r, steps) })
}

func (k *lockedTx) receive(ctx context.Context, r *store.Record, steps []store.Step) (store.Found, error) {
	// All that can be refused is refused before the first change, because others share
	// the transaction.
	id := r.Key.ID()
	inserted, err := insertArgs(id[:], r)
	if err != nil {
		return store.Found{}, err
	}
	replaced, err := replaceArgs(id[:], r)
	if err != nil {
		return store.Found{}, err
	}
	encoded := make([][]byte, len(steps))
	for i := range steps {
		if encoded[i] = store.EncodeStep(&steps[i]); len(encoded[i]) > maxOutcome {
			return store.Found{}, fmt.Errorf("%w: step %q has %d bytes; the limit is %d", store.ErrTooLarge, steps[i].Name, len(encoded[i]), maxOutcome)
		}
	}
	old, err := k.read(ctx, r.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		err = exactlyOne(k.db.exec(ctx, stReceive, inserted...))
	case err == nil && !r.Later(old):
		return store.Found{Record: *old, Now: k.now}, nil
	}
	if err == nil {
		err = exactlyOne(k.db.exec(ctx, stReplace, replaced...))
	}
	if err == nil {
		_, err = k.db.exec(ctx, stDropSteps, id[:])
	}
	for i := range steps {
		if err == nil {
			err = exactlyOne(k.db.exec(ctx, stReceiveStep, id[:], store.Micros(r.Created), steps[i].Name, store.Micros(steps[i].Recorded), encoded[i]))
		}
	}
	return store.Found{Record: *r, Won: true, Now: k.now}, err
}
