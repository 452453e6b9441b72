//go:build unix

package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/examples/internal/exampletest"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// server is the PostgreSQL of the tests, which take turns.
var server proctest.Shared[*pgtest.Server]

// The campaigns run this binary again as the services.
func TestMain(m *testing.M) {
	if child() {
		return
	}
	os.Exit(proctest.Main(m, &server))
}

// startPostgres returns the URL of a server without the databases of the services.
func startPostgres(t *testing.T) string {
	t.Helper()
	s, err := server.Get(func() (*pgtest.Server, error) { return pgtest.New(pgtest.Fast...) })
	proctest.Need(t, err, pgtest.ErrNotInstalled)
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for name := range services {
		if _, err := conn.Exec(t.Context(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Fatal(err)
		}
	}
	return s.URL()
}

func TestServices_LastStepFails_PaymentReturnedAndOrderCancelled(t *testing.T) {
	broker := exampletest.StartKafka(t)
	c := &config{kafka: broker.Addr, postgres: startPostgres(t), lease: time.Second, session: 10 * time.Second}
	for range 2 { // the second time everything exists
		if err := c.run(t.Context(), "setup"); err != nil {
			t.Fatal(err)
		}
	}
	for name := range services {
		for _, verb := range []string{"serve ", "publish "} {
			exampletest.Serve(t, func(ctx context.Context, _ string) error { return c.run(ctx, verb+name) })
		}
	}
	for range 2 { // a client that gets no answer, and places its orders again
		if err := c.run(t.Context(), "place"); err != nil {
			t.Fatal(err)
		}
	}
	orders, err := c.open(t.Context(), services["orders"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(orders.close)
	exampletest.WaitFor(t, "each order has ended", func() bool {
		var open int
		if err := orders.pool.QueryRow(t.Context(), "SELECT count(*) FROM purchase WHERE state = 'placed'").Scan(&open); err != nil {
			t.Fatal(err)
		}
		return open == 0
	})
	states := read[string](t, orders, "SELECT id, state FROM purchase")
	cents := read[int64](t, openService(t, c, "payments"), "SELECT customer, cents FROM account")
	units := read[int64](t, openService(t, c, "stock"), "SELECT name, units FROM item")
	bob, eve := int64(10000), int64(7000)
	if states["o2"] == "booked" { // bob has got the only lamp
		bob, eve = 7000, 10000
	}
	if states["o1"] != "booked" || states["o4"] != "cancelled" || (states["o2"] == "booked") == (states["o3"] == "booked") {
		t.Errorf("the orders are %v; want o1 and one of o2 and o3 booked", states)
	}
	if cents["ann"] != 9000 || cents["bob"] != bob || cents["eve"] != eve {
		t.Errorf("the accounts are %v; want 9000 for ann, %d for bob and %d for eve", cents, bob, eve)
	}
	if units["book"] != 99 || units["lamp"] != 0 || units["piano"] != 1 {
		t.Errorf("the stock is %v; want 99 books, no lamp and 1 piano", units)
	}
}

// openService opens the database of a service until the test ends.
func openService(t *testing.T, c *config, name string) *database {
	t.Helper()
	d, err := c.open(t.Context(), services[name])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	return d
}

// read is a table of two columns.
func read[V any](t *testing.T, d *database, query string) map[string]V {
	t.Helper()
	rows, err := d.pool.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]V{}
	var key string
	var value V
	if _, err := pgx.ForEachRow(rows, []any{&key, &value}, func() error {
		values[key] = value
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return values
}

func TestRun_UnknownCommand_Error(t *testing.T) {
	for _, command := range []string{"", "serve", "serve nobody", "publish"} {
		if err := (&config{}).run(t.Context(), command); err == nil {
			t.Errorf("%q: no error", command)
		}
	}
}
