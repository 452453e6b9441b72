// Command nats-sqlite takes orders from NATS JetStream and books each of them
// once in SQLite, however often its message comes: the record of the message
// and the booking commit in one transaction. There is nothing to install; see
// its README.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	dir := flag.String("dir", "data", "where the broker and the database keep their files")
	orders := flag.Int("orders", 5, "how many orders to send, three times each")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *dir, *orders, os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run sends orders, handles all that is there, and tells what is in the
// database.
func run(ctx context.Context, dir string, orders int, w io.Writer) (err error) {
	b, err := startBroker(ctx, dir)
	if err != nil {
		return err
	}
	defer b.close()
	s, err := openShop(ctx, dir, w)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }() // all that counts was committed

	before, _, err := s.booked(ctx)
	if err != nil {
		return err
	}
	if err := send(ctx, b, orders); err != nil {
		return err
	}
	if err := serve(ctx, b, s); err != nil {
		return err
	}
	bookings, cents, err := s.booked(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%d messages sent, %d new bookings, %d in all, stock of %d cents sold\n", 3*orders, bookings-before, bookings, cents)
	return err
}
