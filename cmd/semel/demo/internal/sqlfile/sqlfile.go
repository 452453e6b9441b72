// Package sqlfile opens the SQLite files of the demo's services, as an application
// does.
package sqlfile

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite", which sqlitestore uses too
)

// Sync says when a commit returns: one of the constants.
type Sync string

// When a commit returns.
const (
	Full Sync = "full" // when the disk has it
	// Relaxed does not wait for the disk: a commit outlives the process, but not a power cut.
	Relaxed Sync = "normal"
)

// Open opens the file at path, or makes it, and runs the statements of schema, which
// must be harmless to repeat.
func Open(ctx context.Context, path, schema string, sync Sync) (*sql.DB, error) {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // a drive letter
	}
	q := url.Values{"_pragma": {"busy_timeout(20000)", "journal_mode(wal)", "synchronous(" + string(sync) + ")"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: p, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		_ = db.Close() // nothing was written
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return db, nil
}
