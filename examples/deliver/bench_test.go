package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/examples/internal/exampletest"
	"github.com/semel-go/semel/internal/proctest"
)

// plainVar makes this program a plain consumer, from the broker in the variable to the
// service in the next one.
const plainVar, toVar = "EXAMPLE_PLAIN_FROM", "EXAMPLE_PLAIN_TO"

// semel deliver against a plain consumer that POSTs without deduplication, both with 64
// requests at once, before the services of the examples. Consumers and services are
// processes of their own. A rate counts from the first payment that is booked.
func TestDeliver_Throughput_BeforeTheServices(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") == "" {
		t.Skip("measures; run it with SEMEL_TEST_COMPARE=1")
	}
	path, err := deliverer()
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 5
	stores := map[string]func() string{
		"memory":                             func() string { return "memory:" },
		"SQLite":                             func() string { return "sqlite:" + filepath.Join(t.TempDir(), "semel.db") },
		"SQLite on a disk as fast as memory": func() string { return "sqlite:" + filepath.Join(memoryDir(t), "semel.db") },
	}
	for _, s := range []struct {
		program, script string
		messages        int
	}{{"node", compiled(t), 8000}, {"python3", "service.py", 2000}} {
		ratios := map[string][]float64{}
		for range rounds {
			plain := rate(t, s.program, s.script, s.messages, func(broker, address string) *proctest.Process {
				return proctest.Run(t, proctest.Self(t, plainVar+"="+broker, toVar+"="+address))
			})
			for name, store := range stores {
				r := rate(t, s.program, s.script, s.messages, func(broker, address string) *proctest.Process {
					return start(t, path, "--from", "kafka://"+broker+"/"+topic, "--group", group, "--to", address, "--store", store(), "--log-level", "error")
				})
				ratios[name] = append(ratios[name], r/plain)
			}
		}
		for store, all := range ratios {
			slices.Sort(all)
			t.Logf("%s: semel deliver with %s has %.2f times the rate of a plain consumer (median of %d rounds; %.2f to %.2f)",
				s.program, store, all[rounds/2], rounds, all[0], all[rounds-1])
		}
	}
}

// memoryDir is a folder in Linux's memory. Without one it is on the disk.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "semel-") //nolint:usetesting // not on the disk
	if err != nil {
		t.Logf("no folder in memory, so on the disk: %v", err)
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// rate is how many payments a second a service books that a consumer sends.
func rate(t *testing.T, program, script string, messages int, consumer func(broker, address string) *proctest.Process) float64 {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	broker := cluster.ListenAddrs()[0]
	if err := run(t.Context(), broker, "topics"); err != nil {
		t.Fatal(err)
	}
	var payments []payment
	for n := range messages {
		payments = append(payments, payment{fmt.Sprint("pay-", n), fmt.Sprint("account-", n), 1})
	}
	if err := send(t.Context(), broker, payments...); err != nil {
		t.Fatal(err)
	}
	port, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	service := start(t, program, script, fmt.Sprint(port), filepath.Join(t.TempDir(), "booked"))
	defer service.Kill()
	address := fmt.Sprintf("http://127.0.0.1:%d/payments", port)
	exampletest.WaitFor(t, "the service listens", func() bool {
		res, err := http.Get(address)
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return true
	})
	c := consumer(broker, address)
	defer c.Kill()
	first := 0
	exampletest.WaitFor(t, "the first is booked", func() bool { first = read(address).Payments; return first > 0 })
	begun := time.Now()
	exampletest.WaitFor(t, "all are booked", func() bool { return read(address).Payments == messages })
	r := float64(messages-first) / time.Since(begun).Seconds()
	t.Logf("%s: %.0f payments/s", program, r)
	return r
}

// plainConsumer posts each message and commits after each poll, until it is killed.
func plainConsumer(broker, address string) error {
	ctx := context.Background()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumerGroup("plain"), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	defer client.Close()
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	places := make(chan struct{}, 64)
	for {
		var all sync.WaitGroup
		client.PollRecords(ctx, 1000).EachRecord(func(r *kgo.Record) {
			places <- struct{}{}
			all.Go(func() {
				defer func() { <-places }()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(r.Value))
				if err != nil {
					return
				}
				for _, h := range r.Headers {
					if strings.EqualFold(h.Key, consume.KeyHeader) {
						req.Header.Set("Idempotency-Key", string(h.Value))
					}
				}
				if res, err := web.Do(req); err == nil {
					_ = res.Body.Close()
				}
			})
		})
		all.Wait()
		_ = client.CommitUncommittedOffsets(ctx)
	}
}
