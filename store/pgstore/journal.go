package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// journal is the part of a Store that keeps the steps of calls and the timers of records,
// which are rows of semel_step and semel_timer. It takes over records of other stores
// with their steps.
type journal struct{ store *Store }

// RecordStep stores a step of a call (a recovery point of its handler, see
// semel.Execution.Step) in one round trip. It implements store.Journal.
func (j *journal) RecordStep(ctx context.Context, l store.Lease, step store.Step) error {
	s := j.store
	if s.closed.Load() {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return pgwire.Explain("record a step", err)
	}
	err := s.shortWaitSession.recordStep(ctx, &l, &step)
	if pgwire.Code(err) == pgwire.LockNotAvailable {
		err = s.waitForLock(ctx, func() error { return s.waitSession.recordStep(ctx, &l, &step) })
	}
	return pgwire.Explain("record a step", err)
}

// Steps returns the steps that a call has recorded, in their order. If the lease is not
// held any more, it returns store.ErrLeaseLost. It takes one round trip, and does not wait
// for locks. Before a synchronous standby it takes a second one, which confirms the steps.
// It implements store.Journal.
func (j *journal) Steps(ctx context.Context, l store.Lease) ([]store.Step, error) {
	s := j.store
	if s.closed.Load() {
		return nil, ErrClosed
	}
	rows, err := s.ownPool.Query(ctx, s.sql.Steps, table.ID(l.Key), table.Owner(l.Owner), table.Fence(l.Fence), nil)
	if err != nil {
		return nil, pgwire.Explain("read steps", err)
	}
	steps, hasStandby, err := readSteps(rows)
	if hasStandby && len(steps) > 0 {
		err = s.confirm(ctx)
	}
	return steps, pgwire.Explain("read steps", err)
}

func (s *session) recordStep(ctx context.Context, l *store.Lease, step *store.Step) error {
	data := store.EncodeStep(step)
	if len(data) > table.MaxOutcome {
		return fmt.Errorf("%w: %d bytes; the limit is %d", store.ErrTooLarge, len(data), table.MaxOutcome)
	}
	args := []any{table.ID(l.Key), table.Owner(l.Owner), table.Fence(l.Fence), []byte(step.Name), data, s.lockTimeout}
	var kept []byte
	var inserted bool
	err := s.retry(func() error {
		if s.inTx {
			return s.db.QueryRow(ctx, s.sql.RecordNewStep, args...).Scan(&inserted)
		}
		return s.db.QueryRow(ctx, s.sql.RecordStep, args...).Scan(&kept)
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return store.ErrLeaseLost
	case err != nil || inserted:
		return err
	case s.inTx:
		return store.ErrStepRecorded
	}
	recorded, err := store.DecodeStep(step.Name, step.Recorded, kept)
	if err != nil {
		return err
	}
	return store.SameStep(&recorded, step)
}

func readSteps(rows pgx.Rows) (steps []store.Step, hasStandby bool, err error) {
	defer rows.Close()
	exists := false
	for rows.Next() {
		var name, data []byte
		var recorded pgtype.Int8
		if err := rows.Scan(&name, &recorded, &data, &hasStandby, nil); err != nil {
			return nil, false, err
		}
		exists = true
		if !recorded.Valid {
			continue // the record has no step
		}
		step, err := store.DecodeStep(string(name), store.Time(recorded.Int64), data)
		if err != nil {
			return nil, false, fmt.Errorf("%w: step %q of semel_step", err, name)
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		return nil, false, err
	}
	if !exists {
		return nil, false, store.ErrLeaseLost
	}
	return steps, hasStandby, nil
}

// RecordStep implements store.Journal. Until the transaction ends, the record is
// locked against every other change, and its lease is not renewed.
func (t *storeTx) RecordStep(ctx context.Context, l store.Lease, step store.Step) error {
	return pgwire.Explain("record a step in a transaction", t.limited(ctx, func(ctx context.Context) error {
		if err := t.flushPending(ctx, table.ID(l.Key)); err != nil {
			return err
		}
		t.claimSavepoint = false // rolling back to it would undo the step too
		return t.session.recordStep(ctx, &l, &step)
	}))
}

// Steps implements store.Journal. It sends BEGIN, if that was not sent.
func (t *storeTx) Steps(ctx context.Context, l store.Lease) (steps []store.Step, err error) {
	if err := t.flushPending(ctx, table.ID(l.Key)); err != nil {
		return nil, pgwire.Explain("read steps in a transaction", err)
	}
	var lost error
	t.pipeline.Push(t.session.sql.Steps, []any{table.ID(l.Key), table.Owner(l.Owner), table.Fence(l.Fence), t.idleTimeout}, func(res pgx.BatchResults) error {
		rows, err := res.Query()
		if err != nil {
			return err
		}
		steps, t.hasStandby, err = readSteps(rows)
		if errors.Is(err, store.ErrLeaseLost) { // the transaction goes on
			lost, err = err, nil
		}
		return err
	})
	if err = t.pipeline.Flush(ctx); err == nil {
		err = lost
	}
	if err == nil && t.hasStandby && !t.ownsTx && len(steps) > 0 {
		err = t.store.confirm(ctx) // the caller's transaction may only read
	}
	return steps, pgwire.Explain("read steps in a transaction", err)
}

// Steps implements store.Journal.
func (t *ownTx) Steps(ctx context.Context, l store.Lease) (steps []store.Step, err error) {
	err = t.limited(ctx, func(ctx context.Context) error {
		if t.pipeline.DB == nil {
			if err := t.connect(ctx); err != nil {
				return pgwire.Explain("begin", err)
			}
		}
		steps, err = t.storeTx.Steps(ctx, l)
		return err
	})
	return steps, err
}

// SetTimer makes or changes the timer of a record, which says when a worker of a saga has to
// look at it again. It takes one round trip, and implements store.Timers.
func (j *journal) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	id, version, micros := table.ID(k), table.Owner(next), table.Micros(wait, true).Int64
	if seen != (store.Owner{}) {
		changed, err := j.timer(ctx, j.store.sql.MoveTimer, id, version, micros, table.Owner(seen))
		return changed == 1, err
	}
	_, err := j.timer(ctx, j.store.sql.SetTimer, id, version, micros, []byte(k.Operation), []byte(k.Tenant), []byte(k.Value))
	return err == nil, err
}

// DropTimer removes the timer of a record if the timer has the version seen. It takes one
// round trip, and implements store.Timers.
func (j *journal) DropTimer(ctx context.Context, k store.Key, seen store.Owner) error {
	_, err := j.timer(ctx, j.store.sql.DropTimer, table.ID(k), table.Owner(seen))
	return err
}

// timer changes a timer.
func (j *journal) timer(ctx context.Context, statement string, args ...any) (changed int64, err error) {
	s := j.store
	if s.closed.Load() {
		return 0, ErrClosed
	}
	err = s.waitSession.retry(func() error {
		tag, err := s.ownPool.Exec(ctx, statement, args...)
		changed = tag.RowsAffected()
		return err
	})
	return changed, pgwire.Explain("change a timer", err)
}

// DueTimers returns the timers of an operation that are due now or soon, the earliest
// first. It takes one round trip, and implements store.Timers.
func (j *journal) DueTimers(ctx context.Context, operation string, within time.Duration, limit int) ([]store.Timer, time.Time, error) {
	s := j.store
	if s.closed.Load() {
		return nil, time.Time{}, ErrClosed
	}
	rows, err := s.ownPool.Query(ctx, s.sql.DueTimers, []byte(operation), table.Micros(within, true).Int64, int64(limit))
	if err != nil {
		return nil, time.Time{}, pgwire.Explain("read timers", err)
	}
	var due []store.Timer
	var now int64
	var micros pgtype.Int8
	var version pgtype.UUID
	var tenant, key []byte
	_, err = pgx.ForEachRow(rows, []any{&now, &micros, &version, &tenant, &key}, func() error {
		if micros.Valid {
			due = append(due, store.Timer{Key: store.Key{Operation: operation, Tenant: string(tenant), Value: string(key)}, Version: store.Owner(version.Bytes), Due: store.Time(micros.Int64)})
		}
		return nil
	})
	return due, store.Time(now), pgwire.Explain("read timers", err)
}

// Scrub removes the bytes of deleted records from the files of the tables, for example
// after Erase. It rewrites the tables of records, steps and timers (VACUUM FULL), and the
// planner's statistics of the database, which have samples of their values. While a table
// is rewritten, calls wait for it or fail. Scrub needs free space for a copy of the
// largest table. Old bytes stay in the write-ahead log, its archive and backups.
//
// Scrub returns ErrBusy if, for longer than Options.LockTimeout, a transaction or a
// replication slot can still read the deleted rows, or a transaction uses a table. A
// superuser can call it. Any other role must own the tables and the database, and be a
// member of pg_read_all_stats; otherwise an error says what is missing. Connect directly, and not
// through a pooler in transaction mode. Scrub implements store.Scrubber.
func (j *journal) Scrub(ctx context.Context) error {
	s := j.store
	if s.closed.Load() {
		return ErrClosed
	}
	return pgwire.Explain("scrub", s.schema().Scrub(ctx, s.ownPool, s.options.LockTimeout))
}

// Receive stores a record that comes from another store, with its steps. Package
// store/moved calls it. If this store already has that version of the record, or a later one,
// Receive changes nothing. It takes one round trip, or a transaction if the record has steps.
// It implements store.Receiver.
func (j *journal) Receive(ctx context.Context, r store.Record, steps []store.Step) (store.Found, error) {
	s := j.store
	if s.closed.Load() {
		return store.Found{}, ErrClosed
	}
	args, err := table.ReceiveArgs(&r)
	if err != nil {
		return store.Found{}, pgwire.Explain("receive", err)
	}
	statement := s.sql.Receive
	if r.State == store.Unknown {
		statement = s.sql.ReceiveDoubt
	}
	encoded := make([][]byte, len(steps))
	for i := range steps {
		if encoded[i] = store.EncodeStep(&steps[i]); len(encoded[i]) > table.MaxOutcome {
			return store.Found{}, fmt.Errorf("pgstore: receive: %w: step %q has %d bytes; the limit is %d", store.ErrTooLarge, steps[i].Name, len(encoded[i]), table.MaxOutcome)
		}
	}
	// A process that freezes between two statements must not keep the record locked.
	const limitIdle = `SELECT set_config('idle_in_transaction_session_timeout', $1::text, true)`
	var now int64
	write := func(db pgwire.Execer) error { return db.QueryRow(ctx, statement, args...).Scan(&now, nil) }
	err = s.commits.Run(func() error {
		return pgwire.Retry(func() error {
			if len(steps) == 0 {
				return write(s.ownPool)
			}
			return pgx.BeginFunc(ctx, s.ownPool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, limitIdle, s.idleTimeout); err != nil {
					return err
				}
				if err := write(tx); err != nil {
					return err
				}
				for i := range steps {
					if _, err := tx.Exec(ctx, s.sql.ReceiveStep, table.ID(r.Key), store.Micros(r.Created), []byte(steps[i].Name), store.Micros(steps[i].Recorded), encoded[i]); err != nil {
						return err
					}
				}
				return nil
			})
		})
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows): // the row that is there is as late
		return s.Get(ctx, r.Key)
	case err != nil:
		return store.Found{}, pgwire.Explain("receive", err)
	}
	return store.Found{Record: r, Won: true, Now: store.Time(now)}, nil
}
