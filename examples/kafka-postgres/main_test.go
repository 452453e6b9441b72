package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(4 * time.Minute); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within 4 minutes: %s", what)
		}
	}
}

// member serves until the test ends, or stop is called.
func member(t *testing.T, c *config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx, "serve") }()
	over := false
	stop = func() {
		if over {
			return
		}
		over = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// broker is a Kafka in this process, with the topics.
func broker(t *testing.T, c *config) *kadm.Client {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	c.kafka = cluster.ListenAddrs()[0]
	for range 2 { // the second time they are there
		if err := c.run(t.Context(), "topics"); err != nil {
			t.Fatal(err)
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.kafka))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// end is how many records a topic has.
func end(t *testing.T, a *kadm.Client, topic string) (n int64) {
	t.Helper()
	offsets, err := a.ListEndOffsets(t.Context(), topic)
	if err = errors.Join(err, offsets.Error()); err != nil {
		t.Fatal(err)
	}
	offsets.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n
}

// settled is how many records the group is done with.
func settled(t *testing.T, a *kadm.Client) (n int64) {
	t.Helper()
	offsets, err := a.FetchOffsets(t.Context(), group)
	if err != nil {
		return 0 // there is no group yet
	}
	offsets.Each(func(o kadm.OffsetResponse) { n += max(0, o.At) })
	return n
}

func TestEachPaymentIsMadeOnce(t *testing.T) {
	c := &config{postgres: pgtest.Start(t, pgtest.Fast...).URL()}
	admin := broker(t, c)
	first := member(t, c)
	member(t, c) // shares the partitions
	var many []payment
	for n := range 60 {
		many = append(many, payment{fmt.Sprint("more-", n), "ann", "bob", 10})
	}
	err := errors.Join(c.run(t.Context(), "send"), send(t.Context(), c, append(many[:30:30], many...)...))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "some are made", func() bool { return settled(t, admin) > 10 })
	first() // the other takes over
	err = errors.Join(c.run(t.Context(), "send"), send(t.Context(), c, many...), send(t.Context(), c, payment{"too-much", "ann", "bob", 1_000_000}))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "all are handled", func() bool { return settled(t, admin) == end(t, admin, topic) })

	db, err := pgx.Connect(t.Context(), c.postgres)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	for name, want := range map[string]int64{"ann": 10000 - 1000 + 50 - 600, "bob": 10000 + 1000 - 300 + 600, "eve": 10000 + 300 - 50} {
		var cents int64
		if err := db.QueryRow(t.Context(), "SELECT cents FROM bank.account WHERE name = $1", name).Scan(&cents); err != nil || cents != want {
			t.Errorf("%s has %d cents, want %d; %v", name, cents, want, err)
		}
	}
	if n := end(t, admin, "dead-letters."+group); n != 1 {
		t.Errorf("%d dead letters, want that of the payment that was too large", n)
	}
}

func TestAVerbIsNeeded(t *testing.T) {
	if err := (&config{}).run(t.Context(), ""); err == nil {
		t.Error("nothing was done, and that was no error")
	}
}
