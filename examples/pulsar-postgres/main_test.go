package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume/semelpulsar/pulsartest"
	"github.com/semel-go/semel/examples/internal/exampletest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pulsartest.Main(m)) }

// backlog is how many messages of a topic a subscription has not acked; -1 if there is no
// such subscription.
func backlog(t *testing.T, s *pulsartest.Server, topic, subscription string) int {
	t.Helper()
	text, err := s.Request("GET", "/persistent/public/default/"+topic+"/stats?getPreciseBacklog=true", "")
	if err != nil {
		return -1 // there is no topic
	}
	var stats struct {
		Subscriptions map[string]struct {
			Backlog int `json:"msgBacklog"`
		} `json:"subscriptions"`
	}
	if err := json.Unmarshal([]byte(text), &stats); err != nil {
		t.Fatal(err)
	}
	if s, ok := stats.Subscriptions[subscription]; ok {
		return s.Backlog
	}
	return -1
}

func TestServe_OrderSentAgain_IsKeptOnce(t *testing.T) {
	server := pulsartest.Shared(t)
	c := &config{pulsar: server.URL(), postgres: pgtest.Start(t, pgtest.Fast...).URL()}
	db, err := pgx.Connect(t.Context(), c.postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())

	first := exampletest.Serve(t, c.run)
	exampletest.Serve(t, c.run) // shares the subscription
	exampletest.WaitFor(t, "the subscription", func() bool { return backlog(t, server, "orders", "billing") == 0 })
	var many []order
	for n := range 50 {
		many = append(many, order{fmt.Sprint("more-", n), "book", 1})
	}
	if err := errors.Join(c.run(t.Context(), "send"), send(t.Context(), c, append(many[:25:25], many...)...)); err != nil {
		t.Fatal(err)
	}
	first() // the other member takes over
	if err := errors.Join(c.run(t.Context(), "send"), send(t.Context(), c, many...), send(t.Context(), c, order{"order-4", "pen", 1000})); err != nil {
		t.Fatal(err)
	}
	exampletest.WaitFor(t, "all is handled", func() bool {
		return backlog(t, server, "orders", "billing") == 0 && backlog(t, server, "orders-billing-DLQ", "semel") == 1
	})

	var orders, ids, books, pens int
	err = db.QueryRow(t.Context(), `SELECT count(*), count(DISTINCT id),
		(SELECT remaining FROM shop.stock WHERE item = 'book'), (SELECT remaining FROM shop.stock WHERE item = 'pen') FROM shop.orders`).
		Scan(&orders, &ids, &books, &pens)
	if err != nil || orders != 53 || ids != 53 || books != 100-53 || pens != 90 {
		t.Errorf("%d orders of %d ids, %d books and %d pens remain; want 53 of 53, 47 and 90: %v", orders, ids, books, pens, err)
	}
}

func TestRun_NoVerb_Error(t *testing.T) {
	if err := (&config{}).run(t.Context(), ""); err == nil {
		t.Error("run without a verb returned no error")
	}
}
