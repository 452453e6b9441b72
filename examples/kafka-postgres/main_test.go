package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/examples/internal/exampletest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestServe_PaymentSentAgain_IsMadeOnce(t *testing.T) {
	c := &config{postgres: pgtest.Start(t, pgtest.Fast...).URL()}
	broker := exampletest.StartKafka(t)
	c.kafka = broker.Addr
	for range 2 { // the second time the topics exist
		if err := c.run(t.Context(), "topics"); err != nil {
			t.Fatal(err)
		}
	}
	first := exampletest.Serve(t, c.run)
	exampletest.Serve(t, c.run) // shares the partitions
	var many []payment
	for n := range 60 {
		many = append(many, payment{fmt.Sprint("more-", n), "ann", "bob", 10})
	}
	err := errors.Join(c.run(t.Context(), "send"), send(t.Context(), c, append(many[:30:30], many...)...))
	if err != nil {
		t.Fatal(err)
	}
	exampletest.WaitFor(t, "more than 10 payments are made", func() bool { return broker.Committed(t, group) > 10 })
	first() // the other member takes over
	err = errors.Join(c.run(t.Context(), "send"), send(t.Context(), c, many...), send(t.Context(), c, payment{"too-much", "ann", "bob", 1_000_000}))
	if err != nil {
		t.Fatal(err)
	}
	exampletest.WaitFor(t, "all are handled", func() bool { return broker.Committed(t, group) == broker.Records(t, topic) })

	db, err := pgx.Connect(t.Context(), c.postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	for name, want := range map[string]int64{"ann": 10000 - 1000 + 50 - 600, "bob": 10000 + 1000 - 300 + 600, "eve": 10000 + 300 - 50} {
		var cents int64
		if err := db.QueryRow(t.Context(), "SELECT cents FROM bank.account WHERE name = $1", name).Scan(&cents); err != nil || cents != want {
			t.Errorf("%s has %d cents, want %d; error %v", name, cents, want, err)
		}
	}
	if n := broker.Records(t, "dead-letters."+group); n != 1 {
		t.Errorf("%d dead letters, want 1, of the payment that was too large", n)
	}
}

func TestRun_NoVerb_Error(t *testing.T) {
	if err := (&config{}).run(t.Context(), ""); err == nil {
		t.Error("run without a verb returned no error")
	}
}
