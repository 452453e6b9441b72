package pgoutbox

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// The server is killed while transactions write messages and two publishers send them.
// All that was committed is sent, and the first copies of each account are in the order
// of the commits. Commits of the deletions may be lost, so that messages are sent again.
func TestCampaign_ServerKilled_NothingLostOrReordered(t *testing.T) {
	if testing.Short() {
		t.Skip("it restarts a server for seconds")
	}
	kills := 4
	if os.Getenv("SEMEL_EVIDENCE") != "" {
		kills = 60
	}
	server := pgtest.Start(t, pgtest.Durable...)
	p := openShop(t, server.URL(), "semel")
	if _, err := p.app.Exec(t.Context(), "CREATE TABLE account AS SELECT 'account' || i AS name, 0 AS n FROM generate_series(0, 4) AS i"); err != nil {
		t.Fatal(err)
	}
	sink := &outboxtest.Sink{}
	for range 2 {
		p.start(t, sink, &outbox.Options{Lease: 3 * time.Second, Poll: 100 * time.Millisecond})
	}
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for range 3 {
		writers.Go(func() {
			for ctx.Err() == nil {
				if err := p.move(t.Context(), fmt.Sprint("account", rand.IntN(5))); err != nil {
					<-time.After(20 * time.Millisecond) // the server is away
				}
			}
		})
	}
	for n := range kills {
		wait(t, sink, 100*(n+1))
		server.Kill()
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, sink, 100*(kills+1))
	stop()
	writers.Wait()
	want, total := p.accounts(t)
	deadline := time.After(time.Minute)
	for {
		got, firsts, repeats := inOrder(t, sink.Sent())
		if firsts == total {
			for account, n := range want {
				if got[account] != n {
					t.Errorf("%s: %d messages were sent, want %d", account, got[account], n)
				}
			}
			failures := 0
			if t.Failed() { // also a message out of order
				failures = 1
			}
			b, err := json.Marshal(map[string]any{
				"claim": "a message of an outbox whose server is killed is sent, its first copy in the order of the commits of its key", "where": "PostgreSQL",
				"trials": firsts, "failures": failures, "detail": fmt.Sprintf("%d kills, %d repeats", kills, repeats),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("evidence: %s", b)
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			t.Fatalf("%d messages were sent, want %d", firsts, total)
		}
	}
}

// move takes the next number of an account, and writes a message about it.
func (p *shop) move(ctx context.Context, account string) error {
	return pgx.BeginFunc(ctx, p.app, func(tx pgx.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, "UPDATE account SET n = n + 1 WHERE name = $1 RETURNING n", account).Scan(&n); err != nil {
			return err
		}
		return p.box.Put(ctx, tx, message(account, n))
	})
}

// accounts is the last number of each account.
func (p *shop) accounts(t *testing.T) (last map[string]int, total int) {
	t.Helper()
	rows, err := p.app.Query(t.Context(), "SELECT name, n FROM account")
	if err != nil {
		t.Fatal(err)
	}
	last = map[string]int{}
	var name string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error {
		last[name] = n
		total += n
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return last, total
}

// inOrder checks that the first copies of each account are in order.
func inOrder(t *testing.T, sent []outbox.Message) (last map[string]int, firsts, repeats int) {
	t.Helper()
	last = map[string]int{}
	for _, m := range sent {
		var n int
		if _, err := fmt.Sscanf(m.ID, m.OrderKey+"-%d", &n); err != nil {
			t.Fatal(err)
		}
		switch {
		case n == last[m.OrderKey]+1:
			last[m.OrderKey]++
			firsts++
		case n > last[m.OrderKey]+1:
			t.Fatalf("%s: message %d was sent before message %d", m.OrderKey, n, last[m.OrderKey]+1)
		default:
			repeats++
		}
	}
	return last, firsts, repeats
}
