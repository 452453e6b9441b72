package kafkapg_test

import (
	"context"
	"errors"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/consume/semelkafka/kafkapg"
	"github.com/semel-go/semel/store/pgstore"
)

// A service that writes a row for each order, exactly once. The operator has
// created the table and the topics "orders", "dead-letters.billing" and
// "quarantine.billing".
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	cancel() // the example has no servers, so it ends at once
	if err := run(ctx, "postgres://127.0.0.1:1/shop", "127.0.0.1:1"); err != nil {
		return
	}
	log.Print("stopped")
	// Output:
}

func run(ctx context.Context, url, seed string) (err error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := pgstore.New(ctx, pool, nil)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // all transactions have ended, so an error changes nothing
	once, err := pgstore.NewAtomic(store, &semel.Options{Retention: consume.DefaultRetention})
	if err != nil {
		return err
	}
	source, err := semelkafka.New("billing", []string{"orders"}, &semelkafka.Options{Client: []kgo.Opt{kgo.SeedBrokers(seed)}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }() // after Serve: it leaves the group
	// To handle messages by offsets: kafkapg.ServeOffsets(ctx, source, store, bill, nil)
	return kafkapg.ServeKeyed(ctx, source, once, consume.Keyed("billing", consume.FromHeader(consume.KeyHeader)), bill, nil)
}

func bill(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
	keys, bodies := make([]string, len(ms)), make([][]byte, len(ms))
	for i, m := range ms {
		keys[i], bodies[i] = m.Key, m.Body
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // ends a statement that gets no answer
	defer cancel()
	_, err := tx.Exec(ctx, "INSERT INTO bill SELECT * FROM unnest($1::text[], $2::bytea[])", keys, bodies)
	return err
}
