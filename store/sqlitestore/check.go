package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
)

// Check implements store.Checker. It reads the settings of a new connection of
// Atomic.Run, after Options.Pragmas, and the type of the file system (on Linux).
// Each unsafe setting is an ErrUnsafe. It sets the file's journal mode to WAL, and
// changes nothing else.
func (s *Store) Check(ctx context.Context) error {
	return explain("check", s.check(ctx))
}

func (s *Store) check(ctx context.Context) error {
	return s.onConn(ctx, s.opt.Pragmas, func(conn *sql.Conn) error {
		var journal string
		if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&journal); err != nil {
			return err
		}
		var sync int
		if err := conn.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&sync); err != nil {
			return err
		}
		if _, err := schema(ctx, conn); err != nil {
			return err
		}
		return errors.Join(checkSettings(journal, sync, s.opt.Relaxed), s.checkFileSystem())
	})
}

// SQLite's numbers for PRAGMA synchronous.
const (
	syncNormal = 1
	syncFull   = 2
)

func checkSettings(journal string, sync int, relaxed bool) error {
	need := syncFull
	if relaxed {
		need = syncNormal
	}
	var errs []error
	if journal != "wal" {
		errs = append(errs, fmt.Errorf("%w: journal_mode is %q and cannot be changed to \"wal\"; does the file system have shared memory?", ErrUnsafe, journal))
	}
	if sync < need {
		errs = append(errs, fmt.Errorf("%w: synchronous is %d, and must be at least %d", ErrUnsafe, sync, need))
	}
	return errors.Join(errs...)
}

func (s *Store) checkFileSystem() error {
	if name := networkFileSystem(filepath.Dir(s.path)); name != "" {
		return fmt.Errorf("%w: %s is on %s, where WAL mode does not work; put the file on a local disk", ErrUnsafe, s.path, name)
	}
	return nil
}
