package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/semel-go/semel/sweep"
)

// growthCallers is how many callers the section growth has.
const growthCallers = 16

// expiredShare is that one in so many records of the section growth has expired.
const expiredShare = 10

// sized is a store with some number of records.
type sized struct {
	contender
	store   store.Store
	records int
}

// measureGrowth compares tables of different sizes, which take turns: new calls,
// replays, and then a sweep of each, beside new calls.
func measureGrowth(ctx context.Context, l *lab) (all []Figure, err error) {
	for _, g := range []struct {
		name string
		open func(ctx context.Context, l *lab) ([]sized, error)
	}{{sqliteLeased, sizedSQLite}, {postgresLeased, sizedPostgres}} {
		tables, err := g.open(ctx, l)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
		var cs []contender
		for i := range tables {
			cs = append(cs, tables[i].contender)
		}
		for _, kind := range []string{newCalls, replays} {
			figures, err := l.compare(ctx, g.name, kind, growthCallers, cs)
			if err != nil {
				return nil, err
			}
			for i := range figures {
				figures[i].N = tables[i].records
			}
			all = append(all, figures...)
		}
		for i := range tables {
			f, err := l.sweep(ctx, g.name, &tables[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", g.name, tables[i].name, err)
			}
			all = append(all, f)
		}
	}
	return all, nil
}

// sweepPace is how many new calls a second there are beside a sweep, and sweepAlone how
// many calls are made before it.
const sweepPace, sweepAlone = 500, 1500

// sweep makes one pass over a table, beside new calls at a pace, which also run alone
// for some seconds before it.
func (l *lab) sweep(ctx context.Context, group string, s *sized) (Figure, error) {
	began := time.Now()
	alone := time.Duration(min(s.records, sweepAlone)) * time.Second / sweepPace
	before, err := paced(ctx, s.do, func() bool { return time.Since(began) >= alone })
	if err != nil {
		return Figure{}, err
	}
	ended := make(chan struct{})
	var stats sweep.Stats
	var elapsed time.Duration
	began = time.Now()
	go func() {
		defer close(ended)
		stats, err = sweep.Once(ctx, s.store, nil)
		elapsed = time.Since(began)
	}()
	beside, err2 := paced(ctx, s.do, func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	<-ended
	if err := errors.Join(err, err2); err != nil {
		return Figure{}, err
	}
	if want := s.records / expiredShare; stats.Deleted != want {
		return Figure{}, fmt.Errorf("the sweep deleted %d records, want %d", stats.Deleted, want)
	}
	f := Figure{Group: group, Name: s.name, Kind: "sweep", N: s.records, Values: map[string]Stat{"seconds": once(elapsed.Seconds()), "deleted": once(float64(stats.Deleted))}}
	if len(beside) >= sweepPace { // of fewer calls the percentile says little
		f.Values["before"], f.Values["beside"] = once(micros(before[len(before)*99/100])/1000), once(micros(beside[len(beside)*99/100])/1000)
	}
	l.say("  %-28s sweep of %s took %v and deleted %d", group, s.name, elapsed.Round(time.Millisecond), stats.Deleted)
	return f, nil
}

// paced makes new calls at the pace of sweepPace until over, and returns how long each
// took, the shortest first.
func paced(ctx context.Context, do func(ctx context.Context, key string, isNew bool) error, over func() bool) (took []time.Duration, err error) {
	var mu sync.Mutex
	_, err = loop(ctx, growthCallers, nil, func(ctx context.Context, key string, isNew bool) error {
		began, next := time.Now(), time.After(time.Second*growthCallers/sweepPace)
		err := do(ctx, key, isNew)
		d := time.Since(began)
		<-next
		mu.Lock()
		defer mu.Unlock()
		took = append(took, d)
		return err
	}, over)
	slices.Sort(took)
	return took, err
}

// template makes one call, whose record is copied.
func template(ctx context.Context, st store.Store) (func(ctx context.Context, key string, isNew bool) error, error) {
	do, err := leased(st)
	if err != nil {
		return nil, err
	}
	return do, do(ctx, newKey(), true)
}

// copied is a list of columns for copies of the record r: with other ids and keys, and
// one in expiredShare expired. i is the number of the copy, from 1.
func copied(columns []string, id, key string) string {
	values := make([]string, len(columns))
	for i, c := range columns {
		switch c {
		case "id":
			values[i] = id
		case "key":
			values[i] = key
		case "expires":
			values[i] = fmt.Sprintf("CASE WHEN i %% %d = 0 THEN r.updated ELSE r.expires END", expiredShare)
		default:
			values[i] = "r." + c
		}
	}
	return strings.Join(values, ", ")
}

func sizedSQLite(ctx context.Context, l *lab) (all []sized, err error) {
	for _, n := range l.opt.records {
		file := l.file(fmt.Sprintf("growth-%d.db", n))
		st, err := sqlitestore.Open(ctx, file, nil)
		if err != nil {
			return nil, err
		}
		_, err = template(ctx, st)
		if err := errors.Join(err, st.Close()); err != nil {
			return nil, err
		}
		if err := fillSQLite(ctx, file, n); err != nil {
			return nil, err
		}
		if st, err = sqlitestore.Open(ctx, file, nil); err != nil {
			return nil, err
		}
		l.atEnd(st.Close)
		do, err := leased(st)
		if err != nil {
			return nil, err
		}
		all = append(all, sized{contender{name: thousands(n) + " records", do: do}, st, n})
	}
	return all, nil
}

// rawSQLite opens a file of a store without the store.
func rawSQLite(file string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=synchronous(off)")
}

func fillSQLite(ctx context.Context, file string, n int) error {
	db, err := rawSQLite(file)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // the checkpoint below has reported errors
	var names string
	if err := db.QueryRowContext(ctx, "SELECT group_concat(name) FROM pragma_table_info('semel_record') WHERE name <> 'n'").Scan(&names); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, fmt.Sprintf(`INSERT INTO semel_record (%s)
		WITH RECURSIVE copy(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM copy WHERE i < %d)
		SELECT %s FROM copy, (SELECT * FROM semel_record LIMIT 1) r`, names, n, copied(strings.Split(names, ","), "randomblob(16)", "'copy ' || i")))
	if err != nil {
		return err
	}
	if _, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close()) // so that no commit of the measurement waits for it
}

func sizedPostgres(ctx context.Context, l *lab) (all []sized, err error) {
	address, busy, err := l.postgres(ctx)
	if err != nil {
		return nil, err
	}
	records := slices.Clone(l.opt.records)
	if l.opt.large > 0 {
		records = append(records, l.opt.large)
	}
	for _, n := range records {
		schema := fmt.Sprintf("semel_%d", n)
		st, err := pgstore.Open(ctx, address, &pgstore.Options{Schema: schema})
		if err != nil {
			return nil, err
		}
		l.atEnd(st.Close)
		do, err := template(ctx, st)
		if err != nil {
			return nil, err
		}
		if err := fillPostgres(ctx, address, schema, n); err != nil {
			return nil, err
		}
		all = append(all, sized{contender{name: thousands(n) + " records", do: do, server: busy}, st, n})
	}
	return all, nil
}

// fillChunk is how many rows one statement inserts.
const fillChunk = 1_000_000

func fillPostgres(ctx context.Context, address, schema string, n int) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it only closes the connection
	rows, err := conn.Query(ctx, "SELECT column_name::text FROM information_schema.columns WHERE table_schema = $1 AND table_name = 'semel_record' ORDER BY ordinal_position", schema)
	if err != nil {
		return err
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	table := pgx.Identifier{schema, "semel_record"}.Sanitize()
	if _, err := conn.Exec(ctx, "CREATE TEMPORARY TABLE one AS SELECT * FROM "+table+" LIMIT 1"); err != nil {
		return err
	}
	for from := 1; from <= n; from += fillChunk {
		if _, err := conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM one r, generate_series(%d, %d) i", table, strings.Join(columns, ", "),
			copied(columns, "gen_random_uuid()", "convert_to('copy ' || i, 'UTF8')"), from, min(from+fillChunk-1, n))); err != nil {
			return err
		}
	}
	for _, text := range []string{"DROP TABLE one", "VACUUM (ANALYZE) " + table, "CHECKPOINT"} {
		if _, err := conn.Exec(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// postgresNumber asks a server for a number.
func postgresNumber(ctx context.Context, address, query string) (n float64, err error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, query).Scan(&n)
	return n, errors.Join(err, conn.Close(ctx))
}

// sizeOf is the size of a file, and 0 if it is not there.
func sizeOf(file string) float64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return float64(info.Size())
}
