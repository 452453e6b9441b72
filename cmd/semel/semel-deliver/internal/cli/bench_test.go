package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/consume/semelkafka"
)

// Deliver against a plain consumer that POSTs without deduplication, both with 64
// requests at once.
func TestDeliver_Throughput_AgainstPlainConsumer(t *testing.T) {
	if os.Getenv("SEMEL_BENCH") == "" {
		t.Skip("measures; run it with SEMEL_BENCH=1")
	}
	const messages = 10_000
	for _, latency := range []time.Duration{0, 5 * time.Millisecond} {
		var got atomic.Int64
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if latency > 0 {
				<-time.After(latency)
			}
			w.WriteHeader(http.StatusNoContent)
			got.Add(1)
		}))
		rate := func(name string, run func(ctx context.Context, addr, dir string)) float64 {
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "orders", "dead-letters.billing", "quarantine.billing"))
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Close()
			addr := cluster.ListenAddrs()[0]
			produce(t, addr, messages)
			got.Store(0)
			ctx, cancel := context.WithCancel(t.Context())
			ended, began := make(chan struct{}), time.Now()
			go func() {
				defer close(ended)
				run(ctx, addr, t.TempDir())
			}()
			eventually(t, "all messages are sent", func() bool { return got.Load() >= messages })
			perSecond := messages / time.Since(began).Seconds()
			cancel()
			<-ended
			t.Logf("latency %v, %s: %.0f messages/s", latency, name, perSecond)
			return perSecond
		}
		plain := rate("a plain consumer", func(ctx context.Context, addr, _ string) { plainConsumer(ctx, t, addr, service.URL) })
		for _, store := range []string{"memory:", "sqlite:"} {
			r := rate("semel deliver with "+store, func(ctx context.Context, addr, dir string) {
				if store == "sqlite:" {
					store += filepath.Join(dir, "semel.db")
				}
				Run(ctx, []string{"--from", "kafka://" + addr + "/orders", "--group", "billing", "--to", service.URL, "--store", store, "--log-level", "error"},
					func(string) string { return "" }, &bytes.Buffer{}, os.Stderr)
			})
			t.Logf("latency %v: semel deliver has %.2f times the rate of a plain consumer", latency, r/plain)
		}
		service.Close()
	}
}

func produce(t *testing.T, addr string, n int) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var records []*kgo.Record
	for i := range n {
		key := fmt.Sprint("k", i)
		records = append(records, semelkafka.Keyed(&kgo.Record{Topic: "orders", Key: []byte(key), Value: []byte(`{"n":1}`)}, key))
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// plainConsumer posts each message and commits after each poll.
func plainConsumer(ctx context.Context, t *testing.T, addr, url string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumerGroup("plain"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit())
	if err != nil {
		t.Error(err)
		return
	}
	defer client.Close()
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	places := make(chan struct{}, 64)
	for ctx.Err() == nil {
		var all sync.WaitGroup
		client.PollRecords(ctx, 1000).EachRecord(func(r *kgo.Record) {
			places <- struct{}{}
			all.Go(func() {
				defer func() { <-places }()
				res, err := web.Post(url, "application/json", bytes.NewReader(r.Value))
				if err == nil {
					_ = res.Body.Close()
				}
			})
		})
		all.Wait()
		_ = client.CommitUncommittedOffsets(ctx)
	}
}
