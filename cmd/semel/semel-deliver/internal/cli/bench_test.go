//go:build unix

package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/consume/semelkafka"
)

// Deliver against a plain consumer that POSTs without deduplication, both with 64
// requests at once. The rounds alternate, and a rate counts from the first request on.
// The processor time includes the broker and the service, which are in this process.
func TestDeliver_Throughput_AgainstPlainConsumer(t *testing.T) {
	if os.Getenv("SEMEL_BENCH") == "" {
		t.Skip("measures; run it with SEMEL_BENCH=1")
	}
	const rounds, messages = 5, 8000
	for _, latency := range []time.Duration{0, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond} {
		ratios := map[string][]float64{}
		for range rounds {
			plain := measure(t, messages, latency, "a plain consumer", func(ctx context.Context, addr, url string) { plainConsumer(ctx, t, addr, url) })
			for _, kind := range []string{"memory:", "sqlite:"} {
				store := kind
				if kind == "sqlite:" {
					store += filepath.Join(t.TempDir(), "semel.db")
				}
				r := measure(t, messages, latency, "semel deliver with "+kind, func(ctx context.Context, addr, url string) {
					Run(ctx, []string{"--from", "kafka://" + addr + "/orders", "--group", "billing", "--to", url, "--store", store, "--log-level", "error"},
						func(string) string { return "" }, &bytes.Buffer{}, os.Stderr)
				})
				ratios[kind] = append(ratios[kind], r/plain)
			}
		}
		for kind, all := range ratios {
			slices.Sort(all)
			t.Logf("latency %v: semel deliver with %s has %.2f times the rate of a plain consumer (median of %d rounds; %.2f to %.2f)",
				latency, kind, all[rounds/2], rounds, all[0], all[rounds-1])
		}
	}
}

// measure is how many messages a second a consumer sends.
func measure(t *testing.T, messages int, latency time.Duration, name string, run func(ctx context.Context, addr, url string)) float64 {
	t.Helper()
	var got atomic.Int64
	var began atomic.Pointer[time.Time]
	var atBegin atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if now := time.Now(); began.Load() == nil && began.CompareAndSwap(nil, &now) {
			atBegin.Store(int64(processorTime(t)))
		}
		if latency > 0 {
			<-time.After(latency)
		}
		w.WriteHeader(http.StatusNoContent)
		got.Add(1)
	}))
	defer service.Close()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, "orders", "dead-letters.billing", "quarantine.billing"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	addr := cluster.ListenAddrs()[0]
	produce(t, addr, messages)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx, addr, service.URL)
	}()
	eventually(t, "all messages are sent", func() bool { return got.Load() >= int64(messages) })
	perSecond := float64(messages) / time.Since(*began.Load()).Seconds()
	used := processorTime(t) - time.Duration(atBegin.Load())
	cancel()
	<-ended
	t.Logf("latency %v, %s: %.0f messages/s, %v of processor time for each", latency, name, perSecond, used/time.Duration(messages))
	return perSecond
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Error(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
