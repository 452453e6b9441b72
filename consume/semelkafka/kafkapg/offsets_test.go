package kafkapg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var orders = semelkafka.Place{Group: "billing", Topic: "orders", TopicID: "id-1", Partition: 3}

var schemas atomic.Int64

// newSchema is the name of a schema that no other test has.
func newSchema() string { return fmt.Sprintf("k%d_%d", os.Getpid(), schemas.Add(1)) }

func openOffsets(t *testing.T, h Handler) *offsets {
	t.Helper()
	st, err := pgstore.Open(t.Context(), pgtest.URL(t), &pgstore.Options{Schema: newSchema()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return &offsets{st: st, h: h, most: defaultAttempts, marks: map[semelkafka.Place]*mark{}}
}

// items are messages, each behind the one before.
func items(from, next int64) (batch []semelkafka.Item) {
	for i := from; i < next; i++ {
		m := &consume.Message{Origin: consume.Origin{Topic: orders.Topic, Partition: orders.Partition, Offset: i}}
		batch = append(batch, semelkafka.Item{Message: m, Place: orders, From: i})
	}
	return batch
}

func nothing(context.Context, pgx.Tx, []*consume.Message) error { return nil }

// What is between the watermark and a message was never given: it must not
// count as done.
func TestTheWatermarkNeverPassesOverAHole(t *testing.T) {
	l := openOffsets(t, nothing)
	if _, err := l.Own(t.Context(), orders, 5); err != nil {
		t.Fatal(err)
	}
	for _, r := range l.Handle(t.Context(), append(items(5, 7), items(8, 10)...))[2:] {
		if !errors.Is(r.Err, semel.ErrUnavailable) {
			t.Errorf("behind a hole: %v", r.Err)
		}
	}
	gap := items(9, 10)
	gap[0].From = 7 // 7 and 8 were compacted away
	for _, r := range l.Handle(t.Context(), gap) {
		if r.Err != nil {
			t.Errorf("behind what is not there any more: %v", r.Err)
		}
	}
	if next, err := l.Own(t.Context(), orders, 0); err != nil || next != 10 {
		t.Errorf("the watermark is at %d, %v; want 10", next, err)
	}
	for i, r := range l.Handle(t.Context(), items(8, 11)) {
		if r.Err != nil || r.Replayed != (i < 2) {
			t.Errorf("offset %d: replayed %v, %v", 8+i, r.Replayed, r.Err)
		}
	}
}

// One that had the partition is refused, and takes it again only if it is still
// given messages of it.
func TestWhoHadThePartitionBeforeIsRefused(t *testing.T) {
	ran := 0
	count := func(_ context.Context, _ pgx.Tx, ms []*consume.Message) error {
		ran += len(ms)
		return nil
	}
	first := openOffsets(t, count)
	second := &offsets{st: first.st, h: count, most: defaultAttempts, marks: map[semelkafka.Place]*mark{}}
	for _, l := range []*offsets{first, second} {
		if _, err := l.Own(t.Context(), orders, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range first.Handle(t.Context(), items(0, 3)) {
		if !errors.Is(r.Err, semel.ErrLeaseLost) || consume.Decide(r, nil).Action != consume.Hold {
			t.Errorf("the first: %v", r.Err)
		}
	}
	for _, r := range second.Handle(t.Context(), items(0, 2)) {
		if !errors.Is(r.Err, nil) {
			t.Errorf("the second: %v", r.Err)
		}
	}
	for i, r := range first.Handle(t.Context(), items(0, 3)) {
		if r.Err != nil || r.Replayed != (i < 2) {
			t.Errorf("the first again, offset %d: replayed %v, %v", i, r.Replayed, r.Err)
		}
	}
	if ran != 3+2+1 {
		t.Errorf("handlers ran for %d messages, want 6: 3 in vain", ran)
	}
}

// A handler that swallows the error of a statement, one that would end the
// transaction itself, and one that panics: the message is at fault.
func TestHandlersThatMisbehave(t *testing.T) {
	for name, h := range map[string]Handler{
		"swallows": func(ctx context.Context, tx pgx.Tx, _ []*consume.Message) error {
			_, _ = tx.Exec(ctx, "SELECT 1/0")
			return nil
		},
		"commits": func(ctx context.Context, tx pgx.Tx, _ []*consume.Message) error { return tx.Commit(ctx) },
		"rolls":   func(ctx context.Context, tx pgx.Tx, _ []*consume.Message) error { return tx.Rollback(ctx) },
		"panics":  func(context.Context, pgx.Tx, []*consume.Message) error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			l := openOffsets(t, h)
			l.most = 2
			if _, err := l.Own(t.Context(), orders, 0); err != nil {
				t.Fatal(err)
			}
			for attempt, want := range []consume.Action{consume.Retry, consume.DeadLetter} {
				ends := l.Handle(t.Context(), items(0, 2))
				if d := consume.Decide(ends[0], nil); d.Action != want || d.Attempt != attempt+1 {
					t.Errorf("attempt %d: %v, %v", d.Attempt, d.Action, d.Err)
				}
				if d := consume.Decide(ends[1], nil); d.Action != consume.Hold {
					t.Errorf("the one behind: %v, %v", d.Action, d.Err)
				}
			}
			if err := l.Pass(t.Context(), items(0, 1)[0]); err != nil {
				t.Error(err)
			}
			if next, err := l.Own(t.Context(), orders, 0); err != nil || next != 1 {
				t.Errorf("the watermark is at %d, %v; want 1", next, err)
			}
		})
	}
}
