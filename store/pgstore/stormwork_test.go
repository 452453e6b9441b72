package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// leased is a handler without a transaction.
func (s *storm) leased(ctx context.Context, r *rand.Rand, key string) (store.Outcome, error) {
	run := fmt.Sprint("leased ", s.runs.Add(1))
	if _, err := s.s.appPool.Exec(ctx, "INSERT INTO "+s.table+" VALUES ($1, $2, 'leased')", key, run); err != nil {
		return store.Outcome{}, err
	}
	switch r.IntN(20) {
	case 0:
		return store.Outcome{}, errors.New("not now")
	case 1:
		panic("not now")
	case 2:
		return store.Outcome{}, &semel.Failure{Code: "declined", Message: run}
	case 3:
		<-time.After(30 * time.Millisecond)
	}
	return store.Outcome{Code: 200, Body: []byte(run)}, nil
}

// work is a handler in a transaction: it writes its row, and sometimes fails.
func (s *storm) work(ctx context.Context, tx pgx.Tx, r *rand.Rand, key string) (store.Outcome, error) {
	run := fmt.Sprint("atomic ", s.runs.Add(1))
	if _, err := tx.Exec(ctx, "INSERT INTO "+s.table+" VALUES ($1, $2, 'atomic')", key, run); err != nil {
		return store.Outcome{}, err
	}
	exec := func(sql string) error {
		_, err := tx.Exec(ctx, sql)
		return err
	}
	var err error
	switch r.IntN(30) {
	case 0:
		err = errors.New("not now")
	case 1:
		panic("not now")
	case 2:
		err = &semel.Failure{Code: "declined", Message: run}
	case 3:
		err = exec("SELECT 1 / 0")
	case 4:
		_ = exec("SELECT 1 / 0")
	case 5:
		err = exec("INSERT INTO " + pgx.Identifier{s.s.options.Schema, "child"}.Sanitize() + " (parent) VALUES (-1)")
	case 6:
		err = exec("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$")
	case 7:
		err = exec("SELECT pg_terminate_backend(pg_backend_pid())")
	case 8:
		_ = exec("SELECT pg_terminate_backend(pg_backend_pid())")
	case 9:
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		_, err = tx.Exec(short, "SELECT pg_sleep(0.05)")
		cancel()
	case 10:
		err = semel.NoEffect(errors.New("not now"))
	case 11:
		<-time.After(20 * time.Millisecond)
	case 12:
		sub, berr := tx.Begin(ctx)
		if berr != nil {
			return store.Outcome{}, berr
		}
		_, _ = sub.Exec(ctx, "SELECT 1 / 0")
		err = sub.Rollback(ctx)
	}
	return store.Outcome{Code: 200, Body: []byte(run)}, err
}
