package importer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

type withPostgres struct{ m *testing.M }

func (w withPostgres) Run() int { return pgtest.Main(w.m) }

func TestMain(m *testing.M) { os.Exit(redistest.Main(withPostgres{m})) }

// rows is a source of some rows; a nil row is a bad one.
func rows(all ...Row) Source {
	return func(context.Context) iter.Seq2[Row, error] {
		return func(yield func(Row, error) bool) {
			for _, row := range all {
				var err error
				if row == nil {
					err = &RowError{Err: errors.New("it is damaged")}
				}
				if !yield(row, err) {
					return
				}
			}
		}
	}
}

func get(t *testing.T, st store.Store, k store.Key) store.Record {
	t.Helper()
	f, err := st.Get(t.Context(), k)
	if err != nil {
		t.Fatalf("%v: %v", k, err)
	}
	return f.Record
}

func TestRun_Again_ChangesNothing(t *testing.T) {
	st := memstore.New(nil)
	source := rows(
		Row{"key": "a", "status": int64(201), "body": "first"},
		Row{"key": "b", "status": int64(200)},
		nil,
		Row{"key": "old", "status": int64(200), "expires": time.Now().Add(-time.Hour)},
		Row{"key": ""},
	)
	var bad []string
	o := &Options{Defaults: *defaults, Bad: func(row int64, k store.Key, err error) { bad = append(bad, fmt.Sprintf("%d %s%v", row, k.Value, err)) }}
	stats, err := Run(t.Context(), source, st, o)
	if want := (Stats{Read: 5, Imported: 2, Expired: 1, Bad: 2}); err != nil || stats != want {
		t.Errorf("%+v, %v", stats, err)
	}
	slices.Sort(bad)
	if len(bad) != 2 || !strings.HasPrefix(bad[0], "3 it is damaged") || !strings.HasPrefix(bad[1], "5 key: is empty") {
		t.Errorf("bad are %q", bad)
	}
	before := get(t, st, store.Key{Operation: "http", Value: "a"})
	stats, err = Run(t.Context(), source, st, o)
	if want := (Stats{Read: 5, There: 2, Expired: 1, Bad: 2}); err != nil || stats != want {
		t.Errorf("again: %+v, %v", stats, err)
	}
	if after := get(t, st, before.Key); !after.Expires.Equal(before.Expires) {
		t.Errorf("the record was changed: %+v", after)
	}
}

func TestRun_KeyHasRecord_Stays(t *testing.T) {
	st := memstore.New(nil)
	k := store.Key{Operation: "http", Value: "k"}
	f, err := st.Claim(t.Context(), store.Proposal{Key: k, State: store.Processing, Owner: store.Owner{1}, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	different := int64(0)
	o := &Options{Defaults: *defaults, Different: func(row int64, _ store.Key) { different = row }}
	stats, err := Run(t.Context(), rows(Row{"key": "k", "status": int64(200), "body": "x"}), st, o)
	if want := (Stats{Read: 1, Different: 1}); err != nil || stats != want || different != 1 {
		t.Errorf("%+v, row %d, %v", stats, different, err)
	}
	if r := get(t, st, k); r.State != store.Processing || r.Fence != f.Record.Fence {
		t.Errorf("the claim was overwritten: %+v", r)
	}
}

func TestRun_DryRun_ImportsNothing(t *testing.T) {
	st := memstore.New(nil)
	stats, err := Run(t.Context(), rows(Row{"key": "k", "status": int64(200)}), st, &Options{Defaults: *defaults, DryRun: true})
	if want := (Stats{Read: 1, Imported: 1}); err != nil || stats != want {
		t.Errorf("%+v, %v", stats, err)
	}
	if _, err := st.Get(t.Context(), store.Key{Operation: "http", Value: "k"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a dry run wrote a record: %v", err)
	}
}

func TestSQL_SQLiteTable_RowsByName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app ?.db")
	fill(t, "sqlite", "file:"+strings.NewReplacer(" ", "%20", "?", "%3f").Replace(path),
		`CREATE TABLE seen (id TEXT, account TEXT, code INTEGER, answer BLOB, at INTEGER)`,
		`INSERT INTO seen VALUES ('k1', 'ann', 201, X'00ff', 1795860000), ('k2', NULL, NULL, NULL, NULL)`)
	imported(t, "sqlite:"+path, "SELECT id, account AS tenant, code AS status, answer AS body, at AS created FROM seen ORDER BY id", "\x00\xff")
}

func TestSQL_PostgresTable_RowsByName(t *testing.T) {
	url := pgtest.URL(t)
	table := "seen_" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "_"))
	fill(t, "pgx", url, "DROP TABLE IF EXISTS "+table,
		"CREATE TABLE "+table+" (id text, account text, code smallint, answer jsonb, at timestamptz)",
		"INSERT INTO "+table+` VALUES ('k1', 'ann', 201, '{"id": 1}', '2026-11-28 10:00:00+00'), ('k2', NULL, NULL, NULL, NULL)`)
	imported(t, url, "SELECT id, account AS tenant, code AS status, answer AS body, at AS created FROM "+table+" ORDER BY id", `{"id": 1}`)
}

// A database pads char(n), and has a time that never comes. Neither may pass for imported.
func TestSQL_PostgresPaddedKeyOrInfinity_IsBadRow(t *testing.T) {
	url := pgtest.URL(t)
	fill(t, "pgx", url, "DROP TABLE IF EXISTS padded", "CREATE TABLE padded (key char(40), code smallint, expires timestamptz)",
		"INSERT INTO padded VALUES ('8e03978e-40d5-43dd-bc93-6894a57f9324', 200, now() + interval '1 day'), ('k2', 200, 'infinity'), ('k3', 200, '-infinity')")
	for query, want := range map[string]Stats{
		"SELECT key, code AS status, expires FROM padded":                                                           {Read: 3, Bad: 3},
		"SELECT trim(key) AS key, code AS status, expires FROM padded":                                              {Read: 3, Imported: 1, Bad: 2},
		"SELECT trim(key) AS key, code AS status, LEAST(expires, now() + interval '1 year') AS expires FROM padded": {Read: 3, Imported: 2, Bad: 1},
	} {
		source, err := SQL(url, query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if stats, err := Run(t.Context(), source, memstore.New(nil), &Options{Defaults: *defaults}); err != nil || stats != want {
			t.Errorf("%s: %+v, %v; want %+v", query, stats, err, want)
		}
	}
}

func fill(t *testing.T, driver, name string, statements ...string) {
	t.Helper()
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// imported imports two rows, of which the second has neither tenant nor status.
func imported(t *testing.T, from, query, body string) {
	t.Helper()
	source, err := SQL(from, query, map[string]string{"id": "key"})
	if err != nil {
		t.Fatal(err)
	}
	st := memstore.New(nil)
	d := *defaults
	d.Status = 204
	stats, err := Run(t.Context(), source, st, &Options{Defaults: d, Bad: func(row int64, _ store.Key, err error) { t.Errorf("row %d: %v", row, err) }})
	if want := (Stats{Read: 2, Imported: 2}); err != nil || stats != want {
		t.Fatalf("%+v, %v", stats, err)
	}
	r := get(t, st, store.Key{Operation: "http", Tenant: "ann", Value: "k1"})
	if r.Outcome.Code != 201 || string(r.Outcome.Body) != body || r.Created.Unix() != 1795860000 {
		t.Errorf("%+v", r)
	}
	if r := get(t, st, store.Key{Operation: "http", Value: "k2"}); r.Outcome.Code != 204 || r.Outcome.Gone || len(r.Outcome.Body) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestSQL_UnknownColumn_IsError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	fill(t, "sqlite", path, "CREATE TABLE seen (id TEXT)")
	for query, want := range map[string]string{
		"SELECT id FROM seen":                `the column "id" has no meaning`,
		"SELECT id AS tenant FROM seen":      `no column "key"`,
		"SELECT id AS key, 1 AS x FROM seen": `the column "x"`,
		"SELECT id, 'k' AS key FROM seen":    `two columns are named "key"`,
		"SELECT nothing":                     "--query",
		"DELETE FROM seen RETURNING id":      "readonly",
	} {
		var rename map[string]string
		if strings.Contains(want, "two columns") {
			rename = map[string]string{"id": "key"}
		}
		source, err := SQL("sqlite:"+path, query, rename)
		if err == nil {
			_, err = Run(t.Context(), source, memstore.New(nil), &Options{Defaults: *defaults})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
	if _, err := SQL("sqlite:"+path+".missing", "SELECT 1", nil); err == nil {
		t.Error("a missing file is read")
	}
}

// The first row, which Begin has read, is not lost, and a damaged one ends nothing.
func TestBegin_Source_YieldsAllRows(t *testing.T) {
	good := Row{"key": "a", "status": int64(201)}
	for name, c := range map[string]struct {
		rows []Row
		want Stats
	}{
		"no row":              {nil, Stats{}},
		"a good row first":    {[]Row{good, nil}, Stats{Read: 2, Imported: 1, Bad: 1}},
		"a damaged row first": {[]Row{nil, good}, Stats{Read: 2, Imported: 1, Bad: 1}},
	} {
		source, stop, err := rows(c.rows...).Begin(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		bad := func(_ int64, _ store.Key, err error) {
			if err.Error() != "it is damaged" {
				t.Errorf("%s: the row is bad because %v", name, err)
			}
		}
		if stats, err := Run(t.Context(), source, memstore.New(nil), &Options{Defaults: *defaults, Bad: bad}); err != nil || stats != c.want {
			t.Errorf("%s: %+v, %v", name, stats, err)
		}
		stop()
	}
}
