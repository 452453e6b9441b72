package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// damages maps statements that make a column invalid to a text of the error.
var damages = map[string]string{
	"state = 0":                        "state is 0",
	"state = 7":                        "state is 7",
	"state = -1":                       "state is -1",
	"state = 258":                      "state is 258", // 2 if it were cut to a byte
	"policy = 2":                       "policy is 2",
	"policy = 257":                     "policy is 257",
	"fence = -1":                       "fence is -1",
	"owner = x'00'":                    "owner is 00",
	"format = 0":                       "format is 0",
	"format = 2":                       "a newer one may have written it",
	"gone = 2":                         "gone is 2",
	"header = '{'":                     "header is 1 bytes",
	"header = '{\"a\":1}'":             "header is",
	"header = '[]'":                    "no line in it",
	"header = '[[\"A\"]]'":             "has 1 parts",
	"header = '[[\"A\",\"1\",\"2\"]]'": "has 3 parts",
	"header = '{\"base64\":[[\"!\",\"!\"]]}'": "header is",
	"operation = 'refund'":                    "not that of its operation",
	"tenant = 'bob'":                          "not that of its operation",
	"key = 'k2'":                              "not that of its operation",
}

func TestGet_UnreadableRecord_IsErrorNotAbsence(t *testing.T) {
	for damage, says := range damages {
		t.Run(damage, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			s := openNew(t, &Options{Now: c.Now})
			was := complete(t, s, "k", "result")
			held := claim(t, s, "other")
			mustExec(t, application(t, s, immediate), "UPDATE semel_record SET "+damage+" WHERE key = 'k'")
			ctx := context.Background()
			corrupt := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), says) {
					t.Errorf("%s: %v, want ErrCorrupt that says %q", what, err, says)
				}
				if err != nil && strings.Contains(err.Error(), "acme") {
					t.Errorf("%s: the error tells the tenant: %v", what, err)
				}
			}
			_, err := s.Get(ctx, was.Key)
			corrupt("Get", err)
			f, err := s.Claim(ctx, proposal("k"))
			corrupt("Claim", err)
			if f.Won {
				t.Error("an unreadable record was claimed")
			}
			_, err = s.Swap(ctx, was.Seen(), proposal("k"))
			corrupt("Swap", err)
			corrupt("Settle", s.Settle(ctx, store.Lease{Key: was.Key}, completion("x")))

			errs, others := 0, 0
			for fd, err := range s.List(ctx, store.Filter{}) {
				if err != nil {
					corrupt("List", err)
					errs++
				} else if fd.Record.Key == held.Key {
					others++
				}
			}
			if errs != 1 || others != 1 {
				t.Errorf("List gave %d errors and %d other records, want 1 and 1", errs, others)
			}
			sweepPassesOver(t, s, c)
		})
	}
}

// sweepPassesOver fails the test if a sweep stops at the unreadable record, or
// takes it for absent once it is over.
func sweepPassesOver(t *testing.T, s *Store, c *testClock) {
	t.Helper()
	c.advance(24 * time.Hour)
	res, err := s.Sweep(context.Background(), "", 10)
	if err != nil || len(res.Lapsed) != 1 || res.Next != "" {
		t.Errorf("Sweep: lapsed %d, next %q, error %v; want the other record, and the end", len(res.Lapsed), res.Next, err)
	}
}

func TestSweep_NewerFormat_StaysThere(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := openNew(t, &Options{Now: c.Now})
	complete(t, s, "k", "result")
	app := application(t, s, immediate)
	mustExec(t, app, "UPDATE semel_record SET format = 2")
	sweepNothing := func() {
		t.Helper()
		res, err := s.Sweep(context.Background(), "", 10)
		if err != nil || res.Deleted != 0 {
			t.Errorf("Sweep deleted %d, error %v", res.Deleted, err)
		}
	}
	c.advance(24 * time.Hour)
	sweepNothing()
	mustExec(t, app, "UPDATE semel_record SET format = 1, state = 6") // parked, with an Expires that it must not have
	sweepNothing()
}

func TestOpen_DamagedFile_IsError(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	complete(t, s, "k", "result")
	app := application(t, s, immediate)
	mustExec(t, app, "DROP VIEW semel_readable")
	mustExec(t, app, "ALTER TABLE semel_record RENAME TO gone")
	if _, err := s.Get(context.Background(), testKey("k")); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("without the table: %v, want an error that is not ErrNotFound", err)
	}
	if _, err := s.Claim(context.Background(), proposal("new")); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("a claim without the table: %v", err)
	}
	mustExec(t, app, "DELETE FROM semel_meta")
	mustExec(t, app, "ALTER TABLE gone RENAME TO semel_record")
	if _, err := s.Claim(context.Background(), proposal("new")); !errors.Is(err, ErrForeign) {
		t.Errorf("a claim without the highest swept fence: %v, want ErrForeign", err)
	}
}

// Rows are closed when their context ends, also between two steps of a read.
func TestGet_ContextEnds_IsNotCorrupt(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	r := complete(t, s, "k", "result")
	id := r.Key.ID()
	for what, c := range map[string]struct {
		st   stmt
		args []any
		read func(rows *sql.Rows) error
	}{
		"a record":     {stSelect, []any{id[:]}, func(rows *sql.Rows) error { return new(row).scan(rows) }},
		"semel_meta's": {stMeta, nil, func(rows *sql.Rows) error { return new(meta).scan(rows) }},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		rows, err := s.stmts.query(ctx, c.st, c.args...)
		if err != nil || !rows.Next() {
			t.Fatalf("%s: %v", what, errors.Join(err, rows.Err()))
		}
		cancel()
		for err = c.read(rows); err == nil; err = c.read(rows) {
			runtime.Gosched()
		}
		if errors.Is(err, store.ErrCorrupt) || errors.Is(err, ErrForeign) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s row that was closed: %v, want the context's error", what, err)
		}
		_ = rows.Close()
	}
}
