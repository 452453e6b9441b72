package pgstore

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store/pgstore/internal/table"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// million is a unit of rows.
const million = 1_000_000

// scaleOf is the number in an environment variable, or skips the test.
func scaleOf(t *testing.T, name, what string) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		t.Skipf("a measurement: set %s to %s", name, what)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q; it must be %s", name, text, what)
	}
	return n
}

// scaleURL is a server with default durability: SEMEL_TEST_POSTGRES_URL, where filled
// tables are used again, or a new one.
func scaleURL(t *testing.T) string {
	t.Helper()
	if url := os.Getenv("SEMEL_TEST_POSTGRES_URL"); url != "" {
		return url
	}
	return pgtest.Start(t, fmt.Sprintf("shared_buffers=%dMB", quarterOfMemory(t)), "max_wal_size=16GB", "checkpoint_timeout=30min", "maintenance_work_mem=1GB").URL()
}

// quarterOfMemory is what PostgreSQL's manual gives a server for its buffers, in
// MiB.
func quarterOfMemory(t *testing.T) int {
	t.Helper()
	var kib int
	info, _ := os.ReadFile("/proc/meminfo")
	if _, err := fmt.Sscanf(string(info), "MemTotal: %d kB", &kib); err != nil {
		return 1024
	}
	return max(kib/4/1024, 128)
}

// warm reads a store's index into the server's buffers, where it is if the server
// has run for a while.
func warm(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.ownPool.Exec(t.Context(), "CREATE EXTENSION IF NOT EXISTS pg_prewarm"); err != nil {
		t.Logf("the index is not in the server's buffers: %v", err)
		return
	}
	mustExec(t, s.ownPool, "SELECT pg_prewarm($1::text::regclass)", s.quoted()+".semel_record_pkey")
}

// filled is a store whose table has n rows as the store itself leaves them, but
// with a short outcome. Every one in expired is over; 0: none.
func filled(t *testing.T, url string, n, expired int) *Store {
	t.Helper()
	schema := fmt.Sprintf("semel_%d_%d", n, expired)
	s := openAt(t, url, &Options{Schema: schema})
	is := "filled"
	if got := ask[*string](t, s.ownPool, "SELECT obj_description($1::text::regnamespace)", schema); got != nil && *got == is {
		return s
	}
	start := time.Now()
	table := s.quoted() + ".semel_record"
	mustExec(t, s.ownPool, "TRUNCATE "+table)
	mustExec(t, s.ownPool, "ALTER TABLE "+table+" DROP CONSTRAINT semel_record_pkey") // made at once, when the rows are there
	const writers, chunk = 2, million / 2
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close(context.Background())
			for from := w * chunk; from < n; from += writers * chunk {
				if _, err := conn.Exec(t.Context(), fillSQL(table), from, min(from+chunk, n)-1, expired); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	mustExec(t, s.ownPool, "SET maintenance_work_mem = '1GB'; ALTER TABLE "+table+" ADD PRIMARY KEY (id); RESET maintenance_work_mem")
	mustExec(t, s.ownPool, "VACUUM (ANALYZE) "+table)
	mustExec(t, s.ownPool, "COMMENT ON SCHEMA "+s.quoted()+" IS '"+is+"'")
	t.Logf("%d rows made in %v", n, time.Since(start).Round(time.Second))
	if r := get(t, s, "filled 0x"); string(r.Outcome.Body) != "{}" {
		t.Fatalf("the rows are not as the store's own: %+v", r)
	}
	return s
}

// fillSQL makes rows $1 to $2, of which every $3-th is over. Their keys tell no
// order, so that their ids are anywhere in the index.
func fillSQL(name string) string {
	return `INSERT INTO ` + name + ` (` + table.InsertColumns + `)
		SELECT encode(substr(sha256(int4send(6) || 'charge'::bytea || int4send(4) || 'acme'::bytea || int4send(length(k)) || k), 1, 16), 'hex')::uuid,
			gen_random_uuid(), 4, 0, 1, 0, CASE WHEN $3 > 0 AND i % nullif($3, 0) = 0 THEN now - 1 ELSE now + 86400000000 END,
			'charge', 'acme', k, 'test/1', 'sha256', '', sha256(k), '', 201, false, 'json', NULL, '{}', now - 1000, now, 1, now
		FROM (SELECT i, ('filled ' || i || 'x')::bytea AS k, ` + table.WallClock + ` AS now FROM generate_series($1::integer, $2::integer) i) r`
}
