package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Open opens the store in the file at path. If the file does not exist, Open makes
// it, readable by its owner only. It switches the file to WAL mode, migrates the
// schema unless Options.NoMigrate is set, and fails if a setting is unsafe (see
// [Store.Check]). Nil options mean the defaults. The ctx bounds the opening only.
func Open(ctx context.Context, path string, o *Options) (*Store, error) {
	opt, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if path == "" || strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") {
		return nil, fmt.Errorf("sqlitestore: path is %q; it must name a file (for records in memory use package memstore)", path)
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("sqlitestore: %w", err)
	}
	s := &Store{opt: opt, path: path, gate: newGate(), sweepWindow: sweepWindow}
	if err := s.open(ctx); err != nil {
		_ = s.Close()
		return nil, explain(fmt.Sprintf("open %s", path), err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	if err := create(s.path); err != nil {
		return err
	}
	if s.identity, err = identify(s.path); err != nil {
		return err
	}
	s.path = s.identity.path
	if err := s.checkFile(); err != nil {
		return err
	}
	if err := s.prepareSchema(ctx); err != nil {
		return err
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	wait := fmt.Sprintf("busy_timeout(%d)", s.opt.BusyTimeout.Milliseconds())
	if s.reads, err = s.pool(readers, wait, "query_only(1)"); err != nil {
		return err
	}
	err = untilFree(ctx, s.opt.BusyTimeout, func() error {
		s.stmts, err = prepare(ctx, s.reads, stMeta, stSelect, stWindow, stEnded, stList, stListDoubts, stSteps, stDueTimers)
		return err
	})
	if err != nil {
		return err
	}
	m, err := readMeta(ctx, s.stmts)
	if err != nil {
		return err
	}
	s.id = m.store
	if err := s.identity.remember(); err != nil { // this pool keeps the log open
		return err
	}
	writes, err := s.pool(1, s.durable()...)
	if err != nil {
		return err
	}
	s.writer = newWriter(writes, &s.opt, s.gate, s.identity)
	s.txs, err = s.pool(2, append(s.durable(), s.opt.Pragmas...)...)
	return err
}

// Close waits until queued changes have their answers, and closes the file. Later
// calls of methods return errors. Close may be called again, and concurrently:
// each call returns when the store is closed.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.closing.Lock()
	defer s.closing.Unlock()
	var errs []error
	if s.writer != nil {
		s.writer.close()
		errs = append(errs, s.writer.db.Close())
	}
	if s.stmts != nil {
		s.stmts.close()
	}
	for _, db := range []*sql.DB{s.reads, s.txs} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// create makes the file if it does not exist. It never opens an existing file,
// because closing it would drop the locks that this process holds on it.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// durable returns the settings of connections that write. The first setting of a new
// file is autoVacuum. Later it would write to the file each time, which may be full.
func (s *Store) durable() []string {
	var pragmas []string
	if f, err := os.Stat(s.path); err == nil && f.Size() == 0 {
		pragmas = append(pragmas, autoVacuum)
	}
	if s.opt.Relaxed {
		return append(pragmas, "journal_mode(wal)", "synchronous(normal)", secureDelete)
	}
	return append(pragmas, "journal_mode(wal)", "synchronous(full)", "fullfsync(1)", "checkpoint_fullfsync(1)", secureDelete)
}

const readers = 4 // connections that read

// pool opens up to n connections, each set up by the pragmas.
func (s *Store) pool(n int, pragmas ...string) (*sql.DB, error) {
	q := url.Values{"_pragma": pragmas, "_txlock": {"immediate"}, "_error_rc": {"1"}}
	p := filepath.ToSlash(s.path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // a drive letter
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: p, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}
