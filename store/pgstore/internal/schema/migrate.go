// Package schema makes and checks the PostgreSQL schema that holds the tables of a
// store.
package schema

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

//go:embed migration/*.sql
var files embed.FS

// Scripts are the migrations, as pgstore.Migrations returns them.
func Scripts() fs.FS {
	dir, err := fs.Sub(files, "migration")
	if err != nil {
		return files // cannot happen: the name is a constant, and a valid one
	}
	return dir
}

// Schema is the PostgreSQL schema of one store.
type Schema struct {
	Name       string
	Partitions int // see pgstore.Options.Partitions
}

// Quoted is the name as an SQL identifier.
func (s Schema) Quoted() string { return pgx.Identifier{s.Name}.Sanitize() }

// migrationLock keeps two processes from migrating at the same time. A process that freezes
// holds its locks for a minute.
const migrationLock = `SELECT set_config('idle_in_transaction_session_timeout', '1min', true), pg_advisory_xact_lock(hashtextextended('semel migrate', 0))`

// Migrate runs the migrations that the schema has not had, in one transaction. If
// there is nothing to do, it needs no rights to change tables.
func (s Schema) Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	return s.explainRights(ctx, pool, s.migrate(ctx, pool), howToMigrate)
}

func (s Schema) migrate(ctx context.Context, pool *pgxpool.Pool) error {
	if number, err := s.number(ctx, pool); err != nil || number >= len(upScripts()) {
		return err
	}
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, migrationLock); err != nil {
			return err
		}
		number, err := s.number(ctx, tx)
		if err != nil {
			return err
		}
		for i, script := range upScripts() {
			if i < number {
				continue
			}
			if i == 0 {
				script = partitioned(script, s.Partitions)
			}
			script = strings.NewReplacer(`'"semel"'`, table.Literal(s.Quoted()), `"semel"`, s.Quoted()).Replace(script)
			if _, err := tx.Conn().PgConn().Exec(ctx, script).ReadAll(); err != nil {
				return fmt.Errorf("migration %d: %w", i+1, err)
			}
			if number, err = s.number(ctx, tx); err != nil {
				return err
			}
			if number != i+1 {
				return fmt.Errorf("%w: migration %d left number %d", pgwire.ErrSchema, i+1, number)
			}
		}
		return nil
	})
}

// Check returns pgwire.ErrSchema unless the schema has had every migration.
func (s Schema) Check(ctx context.Context, pool *pgxpool.Pool) error {
	number, err := s.number(ctx, pool)
	if err != nil {
		return s.explainRights(ctx, pool, err, "")
	}
	switch latest := len(upScripts()); {
	case number == 0:
		return fmt.Errorf("%w: %w; call Migrate, or run the scripts of Migrations", pgwire.ErrSchema, store.ErrNoSchema)
	case number < latest:
		return fmt.Errorf("%w: its number is %d, and this version needs %d; call Migrate, or run the scripts of Migrations", pgwire.ErrSchema, number, latest)
	}
	return nil
}

// upScripts are the migrations in order. Migration 1 is at index 0.
func upScripts() []string {
	var scripts []string
	for {
		names, err := fs.Glob(files, fmt.Sprintf("migration/%04d_*.up.sql", len(scripts)+1))
		if err != nil || len(names) != 1 {
			return scripts
		}
		script, err := fs.ReadFile(files, names[0])
		if err != nil {
			return scripts
		}
		scripts = append(scripts, string(script))
	}
}

// number is the number of the last migration that the schema has had, 0 for none. It may
// be greater than this program knows, if the later migrations are additive: they leave
// semel_meta.compatible as it is, so that processes of the version before can start and
// go on during a rolling upgrade. A migration that is not additive raises it.
func (s Schema) number(ctx context.Context, db pgwire.Querier) (int, error) {
	var exists bool
	err := db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1::text AND c.relname IN ('semel_meta', 'semel_record', 'semel_readable'))`, s.Name).Scan(&exists)
	if err != nil || !exists {
		return 0, err
	}
	var number, compatible int
	err = db.QueryRow(ctx, `SELECT schema, compatible FROM `+s.Quoted()+`.semel_meta WHERE one = 1`).Scan(&number, &compatible)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("%w: the row of semel_meta is gone; restore it from a backup", pgwire.ErrSchema)
	}
	if err != nil {
		return 0, err
	}
	if latest := len(upScripts()); number < 1 || number > latest && compatible > latest {
		return number, fmt.Errorf("%w: its number is %d, and this version of the package knows 1 to %d; update the package", pgwire.ErrSchema, number, latest)
	}
	return number, nil
}
