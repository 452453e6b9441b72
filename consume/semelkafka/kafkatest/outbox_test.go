package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgoutbox"
	"github.com/twmb/franz-go/pkg/kgo"
)

// publish is the process of a publisher.
func (k *task) publish() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	st, err := pgstore.Open(ctx, k.Bank, &pgstore.Options{Schema: k.Schema, Connections: 4, NoMigrate: true})
	if err != nil {
		return err
	}
	defer st.Close()
	box, err := pgoutbox.New(st, nil)
	if err != nil {
		return err
	}
	defer box.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Seed), kgo.ProducerLinger(0), kgo.AllowIdempotentProduceCancellation())
	if err != nil {
		return err
	}
	defer client.Close()
	sink, err := semelkafka.NewSink(client)
	if err != nil {
		return err
	}
	p, err := outbox.New(box, sink, &outbox.Options{Lease: time.Second, Batch: 32, InFlight: 64})
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

// accounts writes messages in transactions, each of which takes the next number of an
// account. The numbers are in the order of the commits.
type accounts struct {
	pool interface {
		Begin(context.Context) (pgx.Tx, error)
	}
	box   *pgoutbox.Outbox
	topic string
	table string
	total atomic.Int64
}

var errUndo = errors.New("undo")

// write is one transaction: one or two messages of an account, written with pauses, and
// sometimes rolled back.
func (a *accounts) write(ctx context.Context, account string) error {
	count := 1 + rand.IntN(2)
	undo := rand.IntN(10) == 0
	err := pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		for range count {
			var n int
			if err := tx.QueryRow(ctx, "UPDATE "+a.table+" SET n = n + 1 WHERE name = $1 RETURNING n", account).Scan(&n); err != nil {
				return err
			}
			m := outbox.Message{Topic: a.topic, OrderKey: account, ID: fmt.Sprint(account, "-", n), Body: []byte(strconv.Itoa(n))}
			if err := a.box.Put(ctx, tx, m); err != nil {
				return err
			}
			<-time.After(time.Duration(rand.IntN(6)) * time.Millisecond) // others commit in between
		}
		if undo {
			return errUndo
		}
		return nil
	})
	if err == nil {
		a.total.Add(int64(count))
	}
	if errors.Is(err, errUndo) {
		return nil
	}
	return err
}

// ordered counts the records of the topic, and the first copies among them. It checks
// that the first copies of each account are in order.
func (b *broker) ordered(t *testing.T) (copies, firsts int) {
	t.Helper()
	next := map[string]int{}
	for _, r := range b.records(t, b.name) {
		copies++
		n, err := strconv.Atoi(string(r.Value))
		if err != nil {
			t.Fatal(err)
		}
		switch account := string(r.Key); {
		case n == next[account]+1:
			next[account]++
			firsts++
		case n > next[account]+1:
			t.Errorf("%s: message %d arrived before message %d", account, n, next[account]+1)
			next[account] = n
		}
	}
	return copies, firsts
}

// handleOnce checks that a consumer handles each message once, although there are copies.
func (b *broker) handleOnce(t *testing.T, copies, want int) {
	t.Helper()
	var decided, handled atomic.Int64
	handler := func(context.Context, *semel.Execution, *consume.Message) error {
		handled.Add(1)
		return nil
	}
	source, err := semelkafka.New(b.name, []string{b.name}, &b.opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	c := consumer(t, guard(t, nil), handler, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventSettled {
			decided.Add(1)
		}
	}})
	stop := serve(t, c, source)
	until(t, "all copies settled", func() bool { return decided.Load() >= int64(copies) })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := handled.Load(); got != int64(want) {
		t.Errorf("the consumer handled %d messages, want %d", got, want)
	}
}
