package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/semel-go/semel/store"
)

// The most rows that a step of a sweep reads, and that one transaction deletes, so
// that nobody waits long for the write lock.
const (
	sweepWindow = 20_000
	sweepChunk  = 200
)

// Sweep implements store.Store. It finds expired and lapsed records without the
// write lock. The cursor is the number of the last row that was read. It skips
// unreadable records, which Get and List report.
func (s *Store) Sweep(ctx context.Context, from store.Cursor, limit int) (store.SweepResult, error) {
	after := int64(math.MinInt64)
	if from != "" {
		n, err := strconv.ParseInt(string(from), 10, 64)
		if err != nil {
			return store.SweepResult{}, fmt.Errorf("sqlitestore: sweep cursor is %q; it must be empty or the Next of this store's last step", from)
		}
		after = n
	}
	if err := s.ready(ctx); err != nil {
		return store.SweepResult{}, err
	}
	res := store.SweepResult{Now: s.clock(), Next: from}
	if limit <= 0 {
		return res, nil
	}
	part, err := s.endedRows(ctx, after, limit, res.Now)
	if err != nil {
		return store.SweepResult{}, explain("sweep", err)
	}
	res.Lapsed = part.lapsed
	res.Next = part.next()
	for len(part.expired) > 0 {
		n := min(sweepChunk, len(part.expired))
		upTo := part.expired[n-1]
		deleted := 0
		err := s.do(ctx, func(k *lockedTx) (err error) {
			deleted, err = k.remove(background, after, upTo, res.Now)
			return err
		})
		if err != nil {
			s.needsScrub.Store(true) // some may have been deleted
			return store.SweepResult{}, err
		}
		res.Deleted += deleted
		after, part.expired = upTo, part.expired[n:]
	}
	if res.Deleted > 0 {
		s.needsScrub.Store(true)
	}
	if part.whole && s.needsScrub.Load() {
		s.giveSpaceBack(ctx)
	}
	return res, nil
}

// part is the result of reading a part of the table.
type part struct {
	last    int64 // number of the last row that was read
	whole   bool  // it reaches the end of the table
	expired []int64
	lapsed  []store.Record
}

func (p *part) next() store.Cursor {
	if p.whole {
		return ""
	}
	return store.Cursor(strconv.FormatInt(p.last, 10))
}

// endedRows finds up to limit expired or lapsed rows after a row number.
func (s *Store) endedRows(ctx context.Context, after int64, limit int, now time.Time) (part, error) {
	p := part{last: math.MaxInt64, whole: true}
	if n, err := s.window(ctx, after); err == nil {
		p.last, p.whole = n, false
	} else if !errors.Is(err, sql.ErrNoRows) {
		return p, err
	}
	rows, err := s.stmts.query(ctx, stEnded, after, p.last, store.Micros(now), limit)
	if err != nil {
		return p, err
	}
	defer rows.Close()
	seen, last := 0, after
	for ; rows.Next(); seen++ {
		var w row
		var isExpired bool
		err := w.scan(rows, &isExpired)
		if broken(err) {
			return p, err
		}
		if last = w.n; err != nil {
			continue
		}
		if isExpired {
			p.expired = append(p.expired, w.n)
		} else if r, err := w.record(); err == nil {
			p.lapsed = append(p.lapsed, r)
		}
	}
	if seen == limit {
		p.last, p.whole = last, false
	}
	return p, rows.Err()
}

// window returns the number of the last row of a step, or sql.ErrNoRows.
func (s *Store) window(ctx context.Context, after int64) (n int64, err error) {
	rows, err := s.stmts.query(ctx, stWindow, after, s.sweepWindow-1)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return 0, err
		}
		return 0, sql.ErrNoRows
	}
	return n, rows.Scan(&n)
}

// Deleted records must not stay readable in the file, because answers can contain
// personal data. SQLite overwrites what is deleted (secure_delete), and the sweep
// gives free pages back and empties the log, in which older versions of pages stay.

const (
	// secureDelete is a setting of connections that write.
	secureDelete = "secure_delete(on)"
	// autoVacuum keeps the list of pages that incremental_vacuum needs. It has to be
	// set before the first table is made.
	autoVacuum = "auto_vacuum(incremental)"
	// vacuum gives back up to vacuumPages pages, usually of 4 KiB, so that no change
	// waits long for the write lock.
	vacuum      = "PRAGMA incremental_vacuum(2000)"
	vacuumPages = 2000
)

// giveSpaceBack gives free pages back and empties the log. It does less if there are many
// pages, or if other connections are reading; then the next sweep goes on. It reports
// no error, because the records are deleted either way.
func (s *Store) giveSpaceBack(ctx context.Context) {
	if s.gate.enter(ctx) != nil {
		return
	}
	defer s.gate.leave()
	_ = s.onConn(ctx, nil, func(conn *sql.Conn) error {
		pages, err := giveBack(ctx, conn)
		if err != nil {
			return err
		}
		if inUse, err := emptyLog(ctx, conn); err != nil || inUse {
			return err
		}
		if pages < vacuumPages {
			s.needsScrub.Store(false)
		}
		return nil
	})
}

// emptyLog moves the log into the database file and empties it. inUse is true if a reader or
// writer has kept it from that.
func emptyLog(ctx context.Context, conn *sql.Conn) (inUse bool, err error) {
	var inLog, copied int
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(truncate)").Scan(&inUse, &inLog, &copied)
	return inUse, err
}

// giveBack returns how many pages it gave back.
func giveBack(ctx context.Context, conn *sql.Conn) (pages int, err error) {
	rows, err := conn.QueryContext(ctx, vacuum)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() { // each step gives one page back
		pages++
	}
	return pages, rows.Err()
}

// Erase implements store.Eraser. SQLite overwrites what is deleted; older versions of
// pages stay in the log until Scrub, or a sweep, has emptied it.
func (s *Store) Erase(ctx context.Context, seen store.Seen) error {
	if err := store.CheckErase(seen); err != nil {
		return err
	}
	err := s.do(ctx, func(k *lockedTx) error { return k.erase(background, &seen) })
	s.needsScrub.Store(true) // after an error, too, because the record may have been deleted
	return err
}

// Scrub implements store.Scrubber. It rewrites the file (VACUUM) and empties the log, so
// that no byte of a deleted record is left in the file, its log or its index of the log.
// Nobody else can write meanwhile; reads go on. It needs free space for two copies of the
// file. ErrBusy: a transaction of somebody else took longer than Options.BusyTimeout; call
// Scrub again.
func (s *Store) Scrub(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.gate.enter(ctx); err != nil {
		return err
	}
	defer s.gate.leave()
	wait := fmt.Sprintf("busy_timeout(%d)", s.opt.BusyTimeout.Milliseconds())
	return explain("scrub", s.onConn(ctx, []string{wait}, func(conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, "VACUUM"); err != nil {
			return err
		}
		inUse, err := emptyLog(ctx, conn)
		if err != nil {
			return err
		}
		if inUse {
			return fmt.Errorf("%w: the log cannot be emptied, because a transaction still reads an older state of the file; end it and scrub again", ErrBusy)
		}
		s.needsScrub.Store(false)
		return nil
	}))
}
