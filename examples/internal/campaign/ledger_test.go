package campaign

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/semel-go/semel/store/sqlitestore"
)

// lanes is how many order keys the messages have.
const lanes = 37

// ledger reads the effects from the database in the order of their commits.
type ledger struct {
	file string
	db   *sql.DB
	row  int // the last one that was read

	times     []int // that a message took effect
	done      int   // messages that took effect
	writer    int   // the process that committed last
	last      [lanes]int
	overtaken int // messages that took effect after a later one of their order key
}

// openLedger makes the database of a campaign.
func openLedger(t *testing.T, messages int) *ledger {
	t.Helper()
	l := &ledger{file: filepath.Join(t.TempDir(), "effects.db"), times: make([]int, messages)}
	st, err := sqlitestore.Open(t.Context(), l.file, storeOptions)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if l.db, err = sql.Open("sqlite", l.file+"?_pragma=busy_timeout(30000)"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.db.Close() })
	if _, err := l.db.ExecContext(t.Context(), "CREATE TABLE effects (n INTEGER PRIMARY KEY, message INTEGER NOT NULL, pid INTEGER NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return l
}

// read counts the effects that are new. A writer holds SQLite's only lock until its
// commit, so the numbers of the rows are in the order of the commits.
func (l *ledger) read(t *testing.T) {
	t.Helper()
	rows, err := l.db.QueryContext(t.Context(), "SELECT n, message, pid FROM effects WHERE n > ? ORDER BY n", l.row)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var message int
		if err := rows.Scan(&l.row, &message, &l.writer); err != nil {
			t.Fatal(err)
		}
		if l.times[message]++; l.times[message] > 1 {
			continue
		}
		l.done++
		if lane := message % lanes; message < l.last[lane] {
			l.overtaken++
		} else {
			l.last[lane] = message
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// counts are the messages without an effect, and the effects beyond the first.
func (l *ledger) counts() (lost, double int) {
	for _, n := range l.times {
		if n == 0 {
			lost++
		} else {
			double += n - 1
		}
	}
	return lost, double
}
