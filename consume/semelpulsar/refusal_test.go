package semelpulsar_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelpulsar"
	"github.com/semel-go/semel/consume/semelpulsar/pulsartest"
	"github.com/semel-go/semel/store/memstore"
)

func TestInfo_ServerDown_NamesURL(t *testing.T) {
	t.Parallel()
	client := newClient(t, pulsar.ClientOptions{URL: "pulsar://127.0.0.1:1", OperationTimeout: 300 * time.Millisecond, ConnectionTimeout: 100 * time.Millisecond})
	t.Cleanup(client.Close)
	s, err := semelpulsar.New(client, "orders", "billing", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Info(t.Context())
	wants(t, err, "Pulsar gives no answer", "check the client's URL")
}

// Wrong credentials, and a role that may not consume: it is allowed to, and then may.
func TestCampaign_Credentials_ErrorNamesNextStep(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker of its own")
	}
	t.Parallel()
	server := pulsartest.Secured(t)
	info := func(token string, timeout time.Duration) error {
		client := newClient(t, pulsar.ClientOptions{URL: server.URL(), OperationTimeout: timeout, Authentication: pulsar.NewAuthenticationToken(token)})
		defer client.Close()
		s, err := semelpulsar.New(client, "orders", group, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Info(t.Context())
		return err
	}
	err := info("wrong", 2*time.Second) // the client asks again until the time-out
	wants(t, err, "or refuses the connection", "check the client's URL", "its Authentication", "the broker's say which")
	if strings.Contains(err.Error(), "wrong") {
		t.Errorf("the error shows the token: %v", err)
	}
	wants(t, info(pulsartest.Token("billing"), time.Minute), "the role may not produce or consume here", "pulsar-admin namespaces grant-permission public/default --role ROLE --actions produce,consume")
	if _, err := server.Request("POST", "/namespaces/public/default/permissions/billing", `["produce","consume"]`); err != nil {
		t.Fatal(err)
	}
	if err := info(pulsartest.Token("billing"), time.Minute); err != nil {
		t.Errorf("after it was allowed: %v", err)
	}
}

func TestInfo_ExclusiveIsTaken_NamesType(t *testing.T) {
	t.Parallel()
	b := open(t, pulsar.Exclusive)
	if _, err := b.source(t, b.client).Info(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := b.source(t, b.client).Info(t.Context())
	wants(t, err, "another consumer has the subscription", "pulsar.Failover")
}

// The client (0.19.0) keeps a nil pointer for a partition that was added and that another member
// has at that moment, and panics when it is closed.
func TestServe_PartitionAddedAndBusy_IsReadLater(t *testing.T) {
	t.Parallel()
	b := open(t, pulsar.Exclusive)
	partitions := func(method, n string) {
		t.Helper()
		if _, err := b.server.Request(method, "/persistent/public/default/"+b.topic+"/partitions", n); err != nil {
			t.Fatal(err)
		}
	}
	partitions("PUT", "1")
	var refused atomic.Int64
	ran := make(chan int32, 10)
	c := consumer(t, memstore.New(nil), keyHeader, func(_ context.Context, _ *semel.Execution, m *consume.Message) error {
		ran <- m.Origin.Partition
		return nil
	}, consume.Options{Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventReceiveFailed {
			refused.Add(1)
		}
	}})
	serve(t, c, b.member(t))
	b.Publish(t, keyed("first"))
	if p := <-ran; p != 0 {
		t.Fatalf("the first message is of partition %d", p)
	}
	partitions("POST", "2")
	other, err := b.client.Subscribe(pulsar.ConsumerOptions{Topic: b.topic + "-partition-1", SubscriptionName: group, Type: pulsar.Exclusive})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "refused as busy", func() bool { return refused.Load() > 0 })
	other.Close()
	added, err := b.client.CreateProducer(pulsar.ProducerOptions{Topic: b.topic + "-partition-1", DisableBatching: true})
	if err != nil {
		t.Fatal(err)
	}
	send(t, added, keyed("second"))
	if p := <-ran; p != 1 {
		t.Errorf("the second message is of partition %d", p)
	}
}

// A namespace in which the broker creates no topics, and one that does not exist.
func TestInfo_TopicOrNamespaceMissing_NamesCommand(t *testing.T) {
	t.Parallel()
	b := open(t, pulsar.Shared)
	b.topic = newNamespace(t, b) + "/orders"
	_, err := b.source(t, b.client).Info(t.Context())
	wants(t, err, "pulsar-admin topics create persistent://"+b.topic, "orders-group-DLQ", "orders-group-quarantine")
	b.topic = "public/nowhere/orders"
	_, err = b.source(t, b.client).Info(t.Context())
	wants(t, err, "pulsar-admin namespaces create public/nowhere")
}

// newNamespace makes a namespace in which the broker creates no topics.
func newNamespace(t *testing.T, b *broker) string {
	t.Helper()
	name := fmt.Sprint("public/strict", topics.Add(1))
	for _, r := range []struct{ method, path, body string }{{"PUT", "", ""}, {"POST", "/autoTopicCreation", `{"allowAutoTopicCreation":false}`}} {
		if _, err := b.server.Request(r.method, "/namespaces/"+name+r.path, r.body); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// The topic is deleted in a namespace in which nobody creates it again: the client gives up
// without a word.
func TestCampaign_TopicDeleted_ServeEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the client's time-outs")
	}
	t.Parallel()
	b := open(t, pulsar.Shared)
	space := newNamespace(t, b)
	b.topic = space + "/orders"
	for _, suffix := range []string{"", copyTopics[driver.DeadLetter], copyTopics[driver.Quarantine]} {
		if _, err := b.server.Request("PUT", "/persistent/"+b.topic+suffix, ""); err != nil {
			t.Fatal(err)
		}
	}
	client := newClient(t, pulsar.ClientOptions{URL: b.server.URL(), OperationTimeout: 10 * time.Second})
	t.Cleanup(client.Close)
	s := b.source(t, client)
	c := consumer(t, memstore.New(nil), keyHeader, func(context.Context, *semel.Execution, *consume.Message) error { return nil }, consume.Options{})
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(t.Context(), s) }()
	until(t, "subscribed", func() bool {
		text, err := b.server.Request("GET", "/persistent/"+b.topic+"/stats", "")
		return err == nil && strings.Contains(text, group)
	})
	if _, err := b.server.Request("DELETE", "/persistent/"+b.topic+"?force=true", ""); err != nil {
		t.Fatal(err)
	}
	err := <-ended
	if !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Serve: %v, want ErrClosed", err)
	}
	wants(t, err, "pulsar-admin topics create persistent://"+b.topic)
}
