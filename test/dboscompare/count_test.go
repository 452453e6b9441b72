package dboscompare

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// A step costs Semel one round trip with one statement. What it costs DBOS is printed, with
// the statements.
func TestStep_RoundTripsAndStatements(t *testing.T) {
	pgtest.URL(t) // skips without a server
	for _, name := range []string{"Semel", "DBOS"} {
		t.Run(name, func(t *testing.T) {
			server, err := pgtest.New("shared_preload_libraries=pg_stat_statements", "fsync=off")
			proctest.Need(t, err, err) // the server may not have pg_stat_statements
			proctest.RemoveAtEnd(t, server)
			m := &meter{conn: connect(t, server.URL())}
			if _, err := m.conn.Exec(t.Context(), "CREATE EXTENSION pg_stat_statements"); err != nil {
				t.Fatal(err)
			}
			c := contenderNamed(t, name, server.URL())
			m.count(t, c, "warm", 1)
			short := m.count(t, c, "short", 1)
			long := m.count(t, c, "long", 1+extra)
			trips := float64(long.trips-short.trips) / (sagas * extra)
			statements := 0.0
			for text, calls := range long.calls {
				per := float64(calls-short.calls[text]) / (sagas * extra)
				if per >= 0.5 { // otherwise it is not of a step
					statements += math.Round(per)
					t.Logf("%s: %.2f × %.110s", name, per, strings.Join(strings.Fields(text), " "))
				}
			}
			commits := float64(long.commits-short.commits) / (sagas * extra)
			t.Logf("%s: a step costs %.2f round trips, %.0f statements, %.2f commits of writes and %.0f bytes of WAL", name,
				trips, statements, commits, float64(long.wal-short.wal)/(sagas*extra))
			t.Logf("%s: a saga costs %.1f round trips and %.1f commits of writes besides", name, float64(short.trips)/sagas-trips, float64(short.commits)/sagas-commits)
			expected := map[string]float64{"Semel": 1, "DBOS": 8}[name]
			// Work in the background only adds round trips: many, if the machine is slow.
			if math.Round(trips) < expected || statements < expected || name == "Semel" && statements > expected {
				t.Errorf("%s: a step costs %.2f round trips and %.0f statements, want %.0f of each: docs/saga-compared.md says so", name, trips, statements, expected)
			}
		})
	}
}

const (
	sagas = 10
	extra = 20 // steps
)

func contenderNamed(t *testing.T, name, url string) contender {
	if name == "Semel" {
		return semelSaga(t, url, 0, semelConnections)
	}
	return dbosWorkflow(t, url, 0, dbosConnections)
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

type meter struct{ conn *pgx.Conn }

// reading is what some sagas cost.
type reading struct {
	trips, wal int64
	commits    int64            // of transactions that have written
	calls      map[string]int64 // of a statement
}

// count runs sagas of n steps, one after the other.
func (m *meter) count(t *testing.T, c contender, name string, n int) reading {
	t.Helper()
	began := m.read(t, c)
	for i := range sagas {
		if err := c.run(t.Context(), fmt.Sprint(name, i), n); err != nil {
			t.Fatal(err)
		}
	}
	r := m.read(t, c)
	r.trips, r.wal, r.commits = r.trips-began.trips, r.wal-began.wal, r.commits-began.commits-1 // reading is one
	for text, calls := range began.calls {
		r.calls[text] -= calls
	}
	return r
}

func (m *meter) read(t *testing.T, c contender) reading {
	t.Helper()
	r := reading{trips: c.wire.trips.Load(), calls: map[string]int64{}}
	if err := m.conn.QueryRow(t.Context(), "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, txid_current()").Scan(&r.wal, &r.commits); err != nil {
		t.Fatal(err)
	}
	rows, err := m.conn.Query(t.Context(), "SELECT query, sum(calls)::bigint FROM pg_stat_statements GROUP BY query")
	if err != nil {
		t.Fatal(err)
	}
	var text string
	var calls int64
	if _, err := pgx.ForEachRow(rows, []any{&text, &calls}, func() error { r.calls[text] = calls; return nil }); err != nil {
		t.Fatal(err)
	}
	return r
}
