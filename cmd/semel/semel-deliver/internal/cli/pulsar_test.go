//go:build unix && !race

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/pulsar-client-go/pulsar"
	pulsarlog "github.com/apache/pulsar-client-go/pulsar/log"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelpulsar/pulsartest"
)

// The client of Pulsar has data races of its own, so the race detector does not see this
// file. "make test" runs its tests, whose names have Pulsar in them, without the detector.

// openPulsar makes a topic with a subscription on the broker that tests share.
func openPulsar(t *testing.T) *side {
	t.Helper()
	return pulsarSide(t, pulsartest.Shared(t))
}

func pulsarSide(t *testing.T, s *pulsartest.Server) *side {
	t.Helper()
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: s.URL(), Logger: pulsarlog.DefaultNopLogger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	topic := fmt.Sprint("orders-", queues.Add(1))
	// Pulsar need not keep messages that no subscription waits for.
	billing, err := client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "billing", Type: pulsar.KeyShared})
	if err != nil {
		t.Fatal(err)
	}
	billing.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	if err != nil {
		t.Fatal(err)
	}
	return &side{
		args: []string{"--from", s.URL() + "/" + topic + "?subscription=billing", "--short-retention"},
		publish: func(t *testing.T, key, order, body string) {
			m := &pulsar.ProducerMessage{Payload: []byte(body), Key: order, Properties: map[string]string{consume.KeyHeader: key}}
			if _, err := producer.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		},
		letters: func(t *testing.T) int { return pulsarBacklog(t, s, topic+"-billing-DLQ", "semel") },
	}
}

// pulsarBacklog is how many messages of a topic a subscription has not acked.
func pulsarBacklog(t *testing.T, s *pulsartest.Server, topic, subscription string) int {
	t.Helper()
	text, err := s.Request("GET", "/persistent/public/default/"+topic+"/stats?getPreciseBacklog=true", "")
	if err != nil {
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
	return stats.Subscriptions[subscription].Backlog
}

func TestDeliver_Pulsar_EachMessageOnce(t *testing.T) {
	t.Parallel()
	eachMessageOnce(t, openPulsar(t))
}

func TestCampaign_PulsarMembersAndServiceKilled_NothingLostNothingDouble(t *testing.T) {
	campaign(t, "Pulsar", openPulsar, trials)
}

func TestDeliver_PulsarRefuses_ErrorNamesNextStepExitCode1(t *testing.T) {
	t.Parallel()
	s := pulsartest.Shared(t)
	for want, from := range map[string]string{
		"Pulsar gives no answer, or refuses the connection":        "pulsar://127.0.0.1:1/orders?subscription=billing&timeout=500ms",
		"pulsar-admin namespaces create public/nowhere":            s.URL() + "/public/nowhere/orders?subscription=billing",
		"pulsar-admin topics create persistent://public/deliver/x": s.URL() + "/public/deliver/x?subscription=billing",
	} {
		if strings.Contains(from, "public/deliver") {
			for _, r := range []struct{ method, path, body string }{{"PUT", "", ""}, {"POST", "/autoTopicCreation", `{"allowAutoTopicCreation":false}`}} {
				if _, err := s.Request(r.method, "/namespaces/public/deliver"+r.path, r.body); err != nil {
					t.Fatal(err)
				}
			}
		}
		d := startDelivery(t, "--from", from, "--to", "http://127.0.0.1:1", "--store", "memory:", "--short-retention")
		eventually(t, "the log has "+want, func() bool { return strings.Contains(d.log.String(), want) })
		if code := d.stop(); code != 1 {
			t.Errorf("%s: exit code %d, want 1", from, code)
		}
	}
}

// A member with a token from a file: wrong, it ends; right, it delivers, and goes on after
// the broker was killed and has come back.
func TestCampaign_PulsarTokenAndBrokerKilled_DeliveryGoesOn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker of its own twice")
	}
	s := pulsartest.Secured(t)
	b, e := pulsarSide(t, s), newEndpoint(t)
	token := filepath.Join(t.TempDir(), "token")
	b.args[1] += "&token-file=" + token
	start := func(text string) *delivering {
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return startDelivery(t, append(b.args, "--to", e.URL, "--store", "memory:")...)
	}
	refused := start("s3cret")
	eventually(t, "the credentials are refused", func() bool { return strings.Contains(refused.log.String(), "or refuses the connection") })
	if code := refused.stop(); code != 1 || strings.Contains(refused.log.String(), "s3cret") {
		t.Errorf("exit code %d, want 1; the log must not show the token", code)
	}
	if _, err := s.Request("POST", "/namespaces/public/default/permissions/billing", `["produce","consume"]`); err != nil {
		t.Fatal(err)
	}
	d := start(pulsartest.Token("billing"))
	b.publish(t, "before", "a", "{}")
	eventually(t, "the first message has its effect", func() bool { return e.effects() == 1 })
	s.Kill()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	b.publish(t, "after", "a", "{}")
	eventually(t, "the second message has its effect", func() bool { return e.effects() == 2 })
	if code := d.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
