package pgstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

//go:embed migration/*.sql
var files embed.FS

// Migrations are the scripts that make the tables, for those who run them by
// themselves: 0001_init.up.sql and so on, to be run in order, each in one
// transaction, and the .down.sql that undo them, but for the schema "semel"
// itself. Each up script sets semel_meta.schema to its number. For another
// schema write its name for "semel", with the quotes.
func Migrations() fs.FS {
	dir, err := fs.Sub(files, "migration")
	if err != nil {
		return files // cannot be: the name is a constant, and a valid one
	}
	return dir
}

// Migrate implements store.Migrator: it runs the migrations that the schema
// has not had, the first of which makes it, all in one transaction. A schema
// newer than this version of the package knows is ErrSchema.
func (s *Store) Migrate(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return pgwire.Explain("migrate", s.migrate(ctx))
}

// lockOfMigrations keeps two processes from migrating at once.
const lockOfMigrations = `SELECT pg_advisory_xact_lock(hashtextextended('semel migrate', 0))`

func (s *Store) migrate(ctx context.Context) error {
	if is, err := s.schema(ctx, s.own); err != nil || is == len(ups()) {
		return err // no rights are needed if there is nothing to do
	}
	return pgx.BeginTxFunc(ctx, s.own, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockOfMigrations); err != nil {
			return err
		}
		is, err := s.schema(ctx, tx)
		if err != nil {
			return err
		}
		for i, up := range ups() {
			if i < is {
				continue
			}
			if i == 0 {
				up = partitioned(up, s.opt.Partitions)
			}
			script := strings.NewReplacer(`'"semel"'`, literal(s.quoted()), `"semel"`, s.quoted()).Replace(up)
			if _, err := tx.Conn().PgConn().Exec(ctx, script).ReadAll(); err != nil {
				return fmt.Errorf("migration %d: %w", i+1, err)
			}
			if is, err = s.schema(ctx, tx); err != nil {
				return err
			}
			if is != i+1 {
				return fmt.Errorf("%w: migration %d left number %d", ErrSchema, i+1, is)
			}
		}
		return nil
	})
}

// literal is text as an SQL string.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func (s *Store) quoted() string { return pgx.Identifier{s.opt.Schema}.Sanitize() }

// prepareSchema migrates, or checks that it is not needed.
func (s *Store) prepareSchema(ctx context.Context) error {
	if !s.opt.NoMigrate {
		return s.migrate(ctx)
	}
	is, err := s.schema(ctx, s.own)
	if err != nil {
		return err
	}
	if latest := len(ups()); is < latest {
		return fmt.Errorf("%w: its number is %d, and this version needs %d; call Migrate, or run the scripts of Migrations", ErrSchema, is, latest)
	}
	return nil
}

// ups are the scripts, the first at index 0.
func ups() []string {
	var ups []string
	for {
		names, err := fs.Glob(files, fmt.Sprintf("migration/%04d_*.up.sql", len(ups)+1))
		if err != nil || len(names) != 1 {
			return ups
		}
		script, err := fs.ReadFile(files, names[0])
		if err != nil {
			return ups
		}
		ups = append(ups, string(script))
	}
}

// schema is the number of the last migration that the schema has had, 0 for
// none.
func (s *Store) schema(ctx context.Context, db pgwire.Querier) (int, error) {
	var there bool
	err := db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1::text AND c.relname IN ('semel_meta', 'semel_record', 'semel_readable'))`, s.opt.Schema).Scan(&there)
	if err != nil || !there {
		return 0, err
	}
	var is int
	err = db.QueryRow(ctx, `SELECT schema FROM `+s.quoted()+`.semel_meta WHERE one = 1`).Scan(&is)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("%w: the row of semel_meta is gone; restore it from a backup", ErrSchema)
	}
	if err != nil {
		return 0, err
	}
	if latest := len(ups()); is > latest || is < 1 {
		return is, fmt.Errorf("%w: its number is %d, and this version of the package knows 1 to %d; update the package", ErrSchema, is, latest)
	}
	return is, nil
}
