package kafkatest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// fetched counts the records that a client reads from the brokers.
type fetched struct{ n atomic.Int64 }

// OnFetchBatchRead implements kgo.HookFetchBatchRead.
func (f *fetched) OnFetchBatchRead(_ kgo.BrokerMetadata, _ string, _ int32, m kgo.FetchBatchMetrics) {
	f.n.Add(int64(m.NumRecords))
}

// The client throws away what it has fetched of a partition that is paused. One
// that is slower than the brokers must not have it fetch the same again and
// again.
func TestPace_PausedPartition_KeepsFetchedRecords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		brokers int
		has     [partitions]int
	}{
		"one partition has messages":   {1, [partitions]int{30_000, 0, 0}},
		"all have":                     {1, [partitions]int{10_000, 10_000, 10_000}},
		"all have, on several brokers": {3, [partitions]int{10_000, 10_000, 10_000}},
		"one has more":                 {3, [partitions]int{20_000, 300, 3_000}},
	} {
		for form, take := range map[string]func(*testing.T, *semelkafka.Source, int){"one by one": takeSlowly, "batches": takeBatches} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				_, seed := fake(t, kfake.NumBrokers(c.brokers))
				b := open(t, seed)
				total := 0
				for p, n := range c.has {
					if n > 0 {
						b.to(t, int32(p), numbered(fmt.Sprint(p, "-"), n, "")...)
					}
					total += n
				}
				var f fetched
				take(t, b.source(t, func(o *semelkafka.Options) {
					o.Client = append(o.Client[:len(o.Client):len(o.Client)], kgo.WithHooks(&f))
				}), total)
				t.Logf("%d records were fetched for %d messages", f.n.Load(), total)
				if f.n.Load() > int64(3*total) {
					t.Errorf("%d records were fetched for %d messages", f.n.Load(), total)
				}
			})
		}
	}
}

// takeSlowly takes few messages at once, as Serve does whose handlers are slow.
func takeSlowly(t *testing.T, s *semelkafka.Source, total int) {
	for done := 0; done < total; {
		ds, err := s.Next(t.Context(), 4)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range ds {
			if err := d.Ack(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		done += len(ds)
	}
}

func takeBatches(t *testing.T, s *semelkafka.Source, total int) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := 0
	err := s.ServeBatches(ctx, easyLedger{}, &consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventSettled {
			if done++; done == total {
				cancel()
			}
		}
	}})
	if err != nil || done < total {
		t.Errorf("ServeBatches: %v, with %d done", err, done)
	}
}

// easyLedger does nothing.
type easyLedger struct{}

func (easyLedger) Own(_ context.Context, _ semelkafka.GroupPartition, start int64) (int64, semelkafka.LastMessage, error) {
	return start, semelkafka.LastMessage{}, nil
}

func (easyLedger) OrderKey(semelkafka.Item) string { return "" }

func (easyLedger) Pass(context.Context, semelkafka.Item) error { return nil }

func (easyLedger) Handle(_ context.Context, batch []semelkafka.Item) []driver.Result {
	return make([]driver.Result, len(batch))
}
