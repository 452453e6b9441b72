package campaign

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/consumetest"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelpulsar"
	"github.com/semel-go/semel/consume/semelpulsar/pulsartest"
)

const group = "group"

// topic is a topic of Pulsar with one subscription.
type topic struct {
	server *pulsartest.Server
	client pulsar.Client
	name   string
	kind   pulsar.SubscriptionType
}

// openTopic names a new topic on the server that tests share.
func openTopic(t *testing.T, kind pulsar.SubscriptionType) *topic {
	t.Helper()
	server := pulsartest.Shared(t)
	client, err := newClient(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &topic{server, client, "campaign-" + rand.Text()[:8], kind}
}

func newClient(url string) (pulsar.Client, error) {
	return pulsar.NewClient(pulsar.ClientOptions{URL: url, Logger: log.DefaultNopLogger()})
}

func (p *topic) spec() memberSpec {
	return memberSpec{Broker: "pulsar", URL: p.server.URL(), Name: p.name, Type: int(p.kind)}
}

func (s *memberSpec) pulsarSource() (driver.Source, error) {
	client, err := newClient(s.URL)
	if err != nil {
		return nil, err
	}
	o := &semelpulsar.Options{Type: pulsar.SubscriptionType(s.Type)}
	if o.Type != pulsar.Shared {
		o.OrderKey = semelpulsar.ByKey
	}
	source, err := semelpulsar.New(client, s.Name, group, o)
	if err != nil {
		return nil, err
	}
	return &patientSource{source}, nil
}

// patientSource waits while another member has an exclusive subscription.
type patientSource struct{ *semelpulsar.Source }

func (p *patientSource) Info(ctx context.Context) (driver.Info, error) {
	for {
		i, err := p.Source.Info(ctx)
		if err == nil || !strings.Contains(err.Error(), "ConsumerBusy") {
			return i, err
		}
		select {
		case <-ctx.Done():
			return i, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (p *topic) subscribed(t *testing.T) bool { return p.backlog(t, p.name, group) >= 0 }

// publish sends messages in batches that do not mix order keys.
func (p *topic) publish(ctx context.Context, messages iter.Seq[consume.Message]) error {
	producer, err := p.client.CreateProducer(pulsar.ProducerOptions{Topic: p.name, BatcherBuilderType: pulsar.KeyBasedBatchBuilder, BatchingMaxMessages: 50})
	if err != nil {
		return err
	}
	defer producer.Close()
	var failed atomic.Pointer[error]
	for m := range messages {
		out := &pulsar.ProducerMessage{Payload: m.Body, Key: m.OrderKey, Properties: map[string]string{m.Headers[0].Name: m.Headers[0].Value}}
		producer.SendAsync(ctx, out, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	if err := producer.FlushWithCtx(ctx); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (p *topic) unsettled(t *testing.T) int {
	t.Helper()
	return p.backlog(t, p.name, group)
}

func (p *topic) copies(t *testing.T) int {
	t.Helper()
	return max(p.backlog(t, p.name+"-"+group+"-DLQ", "semel"), 0) + max(p.backlog(t, p.name+"-"+group+"-quarantine", "semel"), 0)
}

// backlog is how many entries of a topic a subscription has not acked; -1 if there is no
// such subscription.
func (p *topic) backlog(t *testing.T, name, subscription string) int {
	t.Helper()
	text, err := p.server.Request("GET", "/persistent/public/default/"+name+"/stats?getPreciseBacklog=true", "")
	if err != nil {
		if strings.Contains(err.Error(), "404") {
			return -1
		}
		t.Fatal(err)
	}
	var stats struct {
		Subscriptions map[string]struct {
			Backlog int `json:"msgBacklog"`
		} `json:"subscriptions"`
	}
	if err := json.Unmarshal([]byte(text), &stats); err != nil {
		t.Fatal(err)
	}
	if s, ok := stats.Subscriptions[subscription]; ok {
		return s.Backlog
	}
	return -1
}

// The order of each key is kept in an exclusive subscription. In the others the broker itself
// may send messages out of order after a death: see docs/decisions/0110.
func TestCampaign_PulsarProcessesKilled_EachMessageOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of both cores")
	}
	t.Parallel()
	messages, kills := consumetest.LoadSize(10_000, 10)
	for name, kind := range map[string]pulsar.SubscriptionType{
		"exclusive": pulsar.Exclusive, "failover": pulsar.Failover, "shared": pulsar.Shared, "key-shared": pulsar.KeyShared,
	} {
		t.Run(name, func(t *testing.T) {
			if kind != pulsar.Exclusive && !long() {
				t.Skip("one type of subscription is enough in the short form; SEMEL_EVIDENCE=1 takes all")
			}
			load{messages: messages, kills: kills, backlog: 2000, ordered: kind == pulsar.Exclusive}.report(t, "Pulsar, "+name+" subscription, SQLite", openTopic(t, kind))
		})
	}
}

func TestCampaign_PulsarControlNoDeduplication_DuplicatesTakeEffect(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of both cores")
	}
	t.Parallel()
	messages, kills := consumetest.LoadSize(10_000, 10)
	load{messages: messages / 10, kills: kills / 5, backlog: 2000, unprotected: true}.report(t, "Pulsar, shared subscription, SQLite", openTopic(t, pulsar.Shared))
}
