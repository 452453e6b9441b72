//go:build unix

package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/internal/proctest"
)

// Deliver against a plain consumer that POSTs without deduplication, both with 64
// requests at once. Each is a process of its own, as it is for users; the broker and the
// service are in this one. The rounds alternate, and a rate counts from the first request.
func TestDeliver_Throughput_AgainstPlainConsumer(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") == "" {
		t.Skip("measures; run it with SEMEL_TEST_COMPARE=1")
	}
	const rounds, messages = 5, 8000
	for _, latency := range []time.Duration{0, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond} {
		ratios := map[string][]float64{}
		for range rounds {
			plain := measure(t, messages, latency, "a plain consumer", "plain")
			for _, kind := range []string{"memory:", "sqlite:"} {
				store := kind
				if kind == "sqlite:" {
					store += filepath.Join(t.TempDir(), "semel.db")
				}
				r := measure(t, messages, latency, "semel deliver with "+kind, "deliver", "--group", "billing", "--store", store, "--log-level", "error")
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

// measure is how many messages a second a consumer sends. The arguments of its process
// get the broker and the service besides.
func measure(t *testing.T, messages int, latency time.Duration, name, role string, args ...string) float64 {
	t.Helper()
	var got atomic.Int64
	var began atomic.Pointer[time.Time]
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if now := time.Now(); began.Load() == nil {
			began.CompareAndSwap(nil, &now)
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
	before := childrensTime(t)
	args = append(args, "--from", "kafka://"+addr+"/orders", "--to", service.URL)
	consumer := proctest.Run(t, proctest.Self(t, roleVar+"="+role, argsVar+"="+strings.Join(args, "\n")))
	eventually(t, "all messages are sent", func() bool { return got.Load() >= int64(messages) })
	perSecond := float64(messages) / time.Since(*began.Load()).Seconds()
	consumer.End(syscall.SIGTERM, time.Minute)
	t.Logf("latency %v, %s: %.0f messages/s, %v of the consumer's processor time for each", latency, name, perSecond, (childrensTime(t)-before)/time.Duration(messages))
	return perSecond
}

// childrensTime is the processor time of the processes that have ended.
func childrensTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
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
