package sqlitestore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/semel-go/semel/store"
)

//go:embed migration/*.sql
var files embed.FS

// Migrations are the scripts that make the schema, for people who run migrations
// with their own tool: 0001_init.up.sql and so on, to be run in order, each in one
// transaction, and the .down.sql scripts that revert them. Each up script sets
// semel_meta.schema to its number.
func Migrations() fs.FS {
	dir, err := fs.Sub(files, "migration")
	if err != nil {
		return files // cannot be: the name is a constant, and a valid one
	}
	return dir
}

// Migrate implements store.Migrator. It runs the migrations that are missing in
// the file, all in one transaction. A migration of a minor version only adds columns
// and tables, so that a process of the version before can go on, and start again. After
// one that does more, older processes get ErrSchema.
func (s *Store) Migrate(ctx context.Context) error {
	return explain("migrate", s.migrate(ctx))
}

func (s *Store) migrate(ctx context.Context) error {
	return s.onConn(ctx, nil, func(conn *sql.Conn) error {
		if err := s.gate.enter(ctx); err != nil {
			return err
		}
		defer s.gate.leave()
		if _, err := conn.ExecContext(ctx, statements[stBegin]); err != nil {
			return err
		}
		if err := migrate(ctx, conn); err != nil {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), statements[stRollback])
			return err
		}
		_, err := conn.ExecContext(ctx, statements[stCommit])
		return err
	})
}

// prepareSchema migrates the schema, or with Options.NoMigrate checks it.
func (s *Store) prepareSchema(ctx context.Context) error {
	if !s.opt.NoMigrate {
		return s.migrate(ctx)
	}
	// A file of another program must not be set to WAL mode, so this only reads.
	return s.onConnWith(ctx, []string{"query_only(1)"}, func(conn *sql.Conn) error {
		version, err := schema(ctx, conn)
		if err != nil {
			return err
		}
		latest := len(ups())
		switch {
		case version == 0:
			return fmt.Errorf("%w: %w; call Migrate, or run the scripts of Migrations", ErrSchema, store.ErrNoSchema)
		case version < latest:
			return fmt.Errorf("%w: its number is %d, and this version needs %d; call Migrate, or run the scripts of Migrations", ErrSchema, version, latest)
		}
		return nil
	})
}

// onConn runs fn on a new connection with the settings of connections that write
// and more pragmas.
func (s *Store) onConn(ctx context.Context, more []string, fn func(conn *sql.Conn) error) error {
	return s.onConnWith(ctx, append(s.durable(), more...), fn)
}

// onConnWith runs fn on a new connection with pragmas.
func (s *Store) onConnWith(ctx context.Context, pragmas []string, fn func(conn *sql.Conn) error) error {
	if s.closed.Load() {
		return ErrClosed
	}
	db, err := s.pool(1, pragmas...)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // the changes are committed
	return untilFree(ctx, s.opt.BusyTimeout, func() error {
		conn, err := db.Conn(ctx) // may be busy: it sets the file to WAL mode
		if err != nil {
			return err
		}
		defer conn.Close()
		return fn(conn)
	})
}

func migrate(ctx context.Context, conn *sql.Conn) error {
	version, err := schema(ctx, conn)
	if err != nil {
		return err
	}
	for i, up := range ups() {
		if i < version {
			continue
		}
		if _, err := conn.ExecContext(ctx, up); err != nil {
			return fmt.Errorf("migration %d: %w", i+1, err)
		}
		if version, err = schema(ctx, conn); err != nil {
			return err
		}
		if version != i+1 {
			return fmt.Errorf("%w: migration %d left number %d", ErrSchema, i+1, version)
		}
	}
	return nil
}

// ups returns the up scripts in order.
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

// schema is the number of the last migration that the file has had, 0 for none. It may
// be greater than this program knows, if the later migrations are additive: they leave
// semel_meta.compatible as it is, so that processes of the version before can start and
// go on during a rolling upgrade. A migration that is not additive raises it.
func schema(ctx context.Context, conn *sql.Conn) (int, error) {
	if err := checkEncoding(ctx, conn); err != nil {
		return 0, err
	}
	rows, err := conn.QueryContext(ctx, `SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name LIKE 'semel\_%' ESCAPE '\' ORDER BY name`)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return 0, err
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil || len(names) == 0 {
		return 0, err
	}
	var version, compatible int
	err = conn.QueryRowContext(ctx, `SELECT schema, compatible FROM semel_meta WHERE one = 1`).Scan(&version, &compatible)
	if err != nil && (ctx.Err() != nil || broken(err) && code(err) != sqlite3.SQLITE_ERROR) { // that is: no such table, or column
		return 0, err
	}
	if err != nil {
		return 0, fmt.Errorf("%w: it has %s, but semel_meta has no schema number: %w", ErrForeign, strings.Join(names, ", "), err)
	}
	if latest := len(ups()); version < 1 || version > latest && compatible > latest {
		return version, fmt.Errorf("%w: its number is %s, and this version of the package knows 1 to %d; update the package", ErrSchema, strconv.Itoa(version), latest)
	}
	return version, nil
}
