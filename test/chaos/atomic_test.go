//go:build unix

package chaos

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/stores"
)

// atomicDeaths are where workers die that run their calls in transactions.
var atomicDeaths = []point{beforeClaim, beforeEffect, afterEffect, beforeCommit, whileCommitting, afterCommit, anywhere}

// Wherever a worker dies, the rows of its handler are there exactly once, and
// every caller gets the outcome that goes with them.
func TestAtomic_WorkersKilled_OneEffect(t *testing.T) {
	t.Parallel()
	rounds := 2
	if figure.Long() {
		rounds = 80 // 560 kills
	}
	killAtomic(t, inTransaction, rounds, atomicDeaths, func(c *campaign, kills int, b books) {
		report(t, b.wrong)
		figure.Report(t, figure.Figure{
			Claim: "the rows of a handler whose worker was killed are there exactly once, and all callers get the outcome that is theirs",
			Where: "postgres, Atomic", Trials: int64(kills), Failures: int64(len(b.wrong)), Detail: c.summary(b),
		})
	})
}

// The books must show an effect that is not in the transaction of its record.
func TestControl_EffectsOutsideTransaction_RepeatSeen(t *testing.T) {
	t.Parallel()
	killAtomic(t, besideIt, 4, []point{afterEffect, beforeCommit}, func(c *campaign, _ int, b books) {
		if b.surplus == 0 || len(b.wrong) == 0 {
			t.Errorf("%d rows too many, %d findings: the books cannot show it", b.surplus, len(b.wrong))
		}
		figure.Report(t, figure.Figure{
			Claim: "the books show rows that are there twice: " + besideIt, Where: "postgres, Atomic", Control: true,
			Trials: int64(c.made), Failures: int64(b.surplus), Detail: c.summary(b),
		})
	})
}

func killAtomic(t *testing.T, how string, rounds int, deaths []point, judge func(c *campaign, kills int, b books)) {
	b, _ := stores.BackendNamed("postgres")
	in := b.Start(t)
	db := newBooks(t, in)
	c := newCampaign(t, b, in, semel.Retry)
	c.spec.Wrap = how
	c.start()
	killed := map[point]int{}
	for range rounds {
		for _, p := range deaths {
			seen := c.answers()
			eventually(t, 3*time.Minute, "answers between two kills", func() bool { return c.answers() >= seen+between })
			for range 5 {
				if c.killAt(p) {
					killed[p]++
					break
				}
			}
		}
	}
	c.finish(5 * time.Minute)
	kills := 0
	for _, p := range deaths {
		kills += killed[p]
		if killed[p] < rounds {
			t.Errorf("%d of %d deaths %s: the test has not met what it is for", killed[p], rounds, p)
		}
	}
	found := c.balance(db)
	found.killed = counts(killed)
	judge(c, kills, found)
}

// newBooks makes the table of the handlers' rows, whose commits take a while,
// so that a worker can die meanwhile.
func newBooks(t *testing.T, in stores.Instance) *sql.DB {
	t.Helper()
	st, err := pgstore.Open(t.Context(), in.URL, nil) // makes the tables
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("pgx", in.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, statement := range []string{
		`CREATE TABLE payment (key text, receipt text)`,
		`CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.01); RETURN NULL; END $$`,
		`CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON payment DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dawdle()`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return db
}

// books is what the rows and the answers say in the end.
type books struct {
	rows, surplus, answers int
	killed                 string
	wrong                  []string
}

// balance compares the rows with the answers: one of each for every key, and
// the same.
func (c *campaign) balance(db *sql.DB) (b books) {
	c.t.Helper()
	receipts := map[string][]string{}
	rows, err := db.QueryContext(c.t.Context(), "SELECT key, receipt FROM payment")
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var key, receipt string
		if err := rows.Scan(&key, &receipt); err != nil {
			c.t.Fatal(err)
		}
		receipts[key] = append(receipts[key], receipt)
		b.rows++
	}
	if err := rows.Err(); err != nil {
		c.t.Fatal(err)
	}
	for n := range c.made {
		key := fmt.Sprint("k", n+1)
		is := receipts[key]
		delete(receipts, key)
		if len(is) != 1 {
			b.surplus += max(0, len(is)-1)
			b.wrong = append(b.wrong, fmt.Sprintf("%s: %d rows: %q", key, len(is), is))
			continue
		}
		for body, n := range c.ledger.of(key).answers {
			b.answers += n
			if body != is[0] {
				b.wrong = append(b.wrong, fmt.Sprintf("%s: %d answers are %q, the row is %q", key, n, body, is[0]))
			}
		}
	}
	for key := range receipts {
		b.wrong = append(b.wrong, key+": rows of a key that was not delivered")
	}
	return b
}

func (c *campaign) summary(b books) string {
	return fmt.Sprintf("kills: %s; %d keys, %d rows, %d answers; deliveries: %s", b.killed, c.made, b.rows, b.answers, counts(c.tally))
}
