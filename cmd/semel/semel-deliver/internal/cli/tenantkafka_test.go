package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/consume/semelkafka"
)

// In a partition of Kafka, messages of other tenants pass those of a busy tenant. The position
// of the group stays before the first one that waits, until it is done.
func TestDeliver_TenantIsBusyInPartition_OthersPass(t *testing.T) {
	t.Parallel()
	const busy, others = 5, 20
	var mu sync.Mutex
	got := map[string]int{}
	answer := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tenant := r.Header.Get("Account")
		mu.Lock()
		got[tenant]++
		mu.Unlock()
		if tenant == "busy" {
			<-answer
		}
	}))
	t.Cleanup(service.Close)
	goOn := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(goOn)
	of := func(tenant string) int {
		mu.Lock()
		defer mu.Unlock()
		return got[tenant]
	}

	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders", "dead-letters.billing", "quarantine.billing"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	addr := cluster.ListenAddrs()[0]
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	publish := func(n int, tenant string) {
		r := semelkafka.Keyed(&kgo.Record{
			Topic: "orders", Key: []byte(fmt.Sprint(tenant, n)), Value: []byte("{}"), Headers: []kgo.RecordHeader{{Key: "account", Value: []byte(tenant)}},
		}, fmt.Sprint(tenant, n))
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	for n := range busy {
		publish(n, "busy")
	}
	for n := range others {
		publish(n, "free")
	}
	d := startDelivery(t, "--from", "kafka://"+addr+"/orders", "--group", "billing", "--to", service.URL, "--store", "memory:", "--admin-listen", "127.0.0.1:0",
		"--scope", "header:account", "--concurrency", "4", "--tenant-requests", "1")
	if line := d.find(t, `msg=delivering (.*)`); !strings.Contains(line, " tenant_requests=1") {
		t.Errorf("the start does not show the limit: %s", line)
	}
	admin := d.find(t, adminAddr)
	eventually(t, "the others are acked", func() bool {
		_, text := get(t, "http://"+admin+"/metrics")
		return strings.Contains(text, fmt.Sprintf("semel_message_decisions_total{action=\"ack\",reason=\"done\"} %d\n", others))
	})
	committed := func() int64 {
		offsets, err := kadm.NewClient(client).FetchOffsets(t.Context(), "billing")
		if err != nil {
			t.Fatal(err)
		}
		o, _ := offsets.Lookup("orders", 0)
		return o.At
	}
	if n := committed(); of("busy") != 1 || of("free") != others || n > 0 {
		t.Errorf("%d requests of the busy tenant, %d of the other one; the position is %d", of("busy"), of("free"), n)
	}
	if d.find(t, `msg="(messages of a tenant wait for a limit)[^"]*" tenant=busy limit=tenant_requests option=--tenant-requests value=1\n`) == "" {
		t.Error("the log does not name the tenant")
	}
	goOn()
	eventually(t, "the position is behind the last message", func() bool { return committed() == busy+others })
	if code := d.stop(); code != 0 || of("busy") != busy {
		t.Errorf("exit code %d, %d requests of the busy tenant", code, of("busy"))
	}
}
