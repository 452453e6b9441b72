package pgstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Admission is what became of a call that was to be admitted.
type Admission struct {
	// Fresh: the work is to be done now, in the transaction.
	Fresh bool
	// Result is what is kept of a call that was done before.
	Result semel.Result
	// Err: neither. It is a *semel.Failure that is kept, or says why there is
	// no answer, such as semel.ErrInProgress.
	Err error
}

// Admit is an inbox in the caller's transaction: it records those of calls
// that are new as done, in two statements however many they are, and the caller
// does their work in the same transaction. If that fails the caller rolls back,
// and nothing was recorded. Of a key that is there twice the first is fresh.
//
// An error means that the transaction has to be rolled back: 40001 in REPEATABLE
// READ, where somebody else has recorded a key since it began. It never waits
// for another transaction that admits. There is one advisory lock for each key
// until the transaction ends: see [Atomic.In].
func (a *Atomic) Admit(ctx context.Context, tx pgx.Tx, calls []semel.Call) ([]Admission, error) {
	return a.admit(ctx, tx, calls)
}

// AdmitSQL is [Atomic.Admit] in a transaction of database/sql: see
// [Atomic.InSQL] for the connection.
func (a *Atomic) AdmitSQL(ctx context.Context, conn *sql.Conn, calls []semel.Call) ([]Admission, error) {
	on, err := openOn(conn)
	if err != nil {
		return nil, fmt.Errorf("pgstore: AdmitSQL: %w", err)
	}
	return a.admit(ctx, on, calls)
}

func (a *Atomic) admit(ctx context.Context, db execer, calls []semel.Call) ([]Admission, error) {
	y := a.newInbox(a.s.newTx(db, true), false)
	if err := y.gather(ctx, all(len(calls)), calls); err != nil {
		return nil, explain("admit", err)
	}
	admitted, err := y.admitAll(ctx)
	return admitted, explain("admit", err)
}

// admitAll records all that is looked for and new.
func (y *inbox) admitAll(ctx context.Context) ([]Admission, error) {
	admitted := make([]Admission, len(y.visitors))
	err := y.runEach(ctx, func(_ context.Context, _ *semel.Execution, i int) (store.Outcome, error) {
		admitted[i].Fresh = true
		return store.Outcome{}, nil
	})
	if err != nil {
		return nil, err
	}
	there, err := y.t.insertAbsent(ctx)
	if err != nil {
		return nil, err
	}
	for i := range y.visitors {
		v := &y.visitors[i]
		is := &admitted[v.i]
		if there[v.id] && v.steps != nil && (is.Fresh || v.err == nil) { // the fresh one, and those that were given what it left
			*is = Admission{Err: &semel.Error{Reason: semel.ErrInProgress, Operation: string(v.steps.Key().Operation), RetryAfter: retryAfter}}
			continue
		}
		is.Err = v.err
		if !is.Fresh {
			is.Result = v.res
		}
	}
	return admitted, nil
}

// insertAbsent writes what is held back, but for the keys that another has
// inserted meanwhile without the key's lock, which it returns.
func (t *storeTx) insertAbsent(ctx context.Context) (there map[pgtype.UUID]bool, err error) {
	there = map[pgtype.UUID]bool{}
	for _, rows := range t.held() {
		for _, r := range rows {
			there[r.id] = true
		}
		sql, args := t.db.sql.admits, []any(nil)
		if areAlike(rows) {
			sql, args = t.db.sql.admitAlike, alikeArrays(rows)
		} else {
			args = insertArrays(rows)
		}
		t.line.push(sql, args, func(res pgx.BatchResults) error {
			rows, err := res.Query()
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var id pgtype.UUID
				if err := rows.Scan(&id); err != nil {
					return err
				}
				delete(there, id)
			}
			return rows.Err()
		})
	}
	return there, t.line.flush(ctx)
}
