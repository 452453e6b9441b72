//go:build unix

package cli

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
)

// bodies is a service that notes a hash of each body by its key.
type bodies struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string]string
}

func newBodies(t *testing.T) *bodies {
	b := &bodies{got: map[string]string{}}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.got[strings.Trim(r.Header.Get("Idempotency-Key"), `"`)] = hash(string(body))
	}))
	t.Cleanup(b.Close)
	return b
}

// of is the hash of the body that came with a key; empty: none did.
func (b *bodies) of(key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.got[key]
}

func hash(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }

// A message of 5 MB arrives whole. One beyond --max-body is not sent, and is in the dead
// letters.
func TestDeliver_LargeMessages_ArriveWholeOrAreDeadLetters(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) *side{"NATS": openNATS, "RabbitMQ": openRabbit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			largeMessages(t, open(t))
		})
	}
}

func largeMessages(t *testing.T, b *side) {
	e := newBodies(t)
	large := map[string]string{"256 KiB": strings.Repeat("x", 256<<10), "5 MB": strings.Repeat("y", 5_000_000)}
	for key, body := range large {
		b.publish(t, key, key, body)
	}
	b.publish(t, "7 MB", "7 MB", strings.Repeat("z", 7_000_000))
	d := startDelivery(t, append(b.args, "--to", e.URL, "--store", "memory:", "--max-body", "6MiB", "--log-level", "warn")...)
	for key, body := range large {
		eventually(t, key+" has arrived", func() bool { return e.of(key) == hash(body) })
	}
	eventually(t, "one message is in the dead letters", func() bool { return b.letters(t) == 1 })
	if code := d.stop(); code != 0 || e.of("7 MB") != "" {
		t.Errorf("exit code %d, and the service got %q", code, e.of("7 MB"))
	}
	if log := d.log.String(); !strings.Contains(log, "the body has 7000000 bytes, more than --max-body, which is 6291456; nothing was sent") {
		t.Error("the log does not say what is wrong")
	}
}

// Malformed CloudEvents and a message without a key are in the dead letters with the
// reason, and the messages after them go on.
func TestDeliver_MalformedEvents_AreDeadLettersWithReason(t *testing.T) {
	t.Parallel()
	endpoint := sqstest.URL(t)
	client, e, name := sqstest.Client(endpoint), newBodies(t), fmt.Sprint("events-", queues.Add(1))
	urls := map[string]*string{}
	for _, suffix := range []string{"", "-dead-letters", "-quarantine"} {
		out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(name + suffix)})
		if err != nil {
			t.Fatal(err)
		}
		urls[suffix] = out.QueueUrl
	}
	send := func(body string, headers ...string) {
		attributes := map[string]types.MessageAttributeValue{}
		for i := 0; i < len(headers); i += 2 {
			attributes[headers[i]] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &headers[i+1]}
		}
		if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: urls[""], MessageBody: &body, MessageAttributes: attributes}); err != nil {
			t.Fatal(err)
		}
	}
	const key, structured = consume.KeyHeader, "application/cloudevents+json"
	wrong := map[string]string{ // by a part of the letter's error
		"the CloudEvent is no JSON object":         `{"specversion":"1.0","id":"7","sou`,
		"the CloudEvent has no source":             `{"specversion":"1.0","id":"7","type":"order"}`,
		`has specversion "0.3"; only 1.0 is`:       `{"specversion":"0.3","id":"7","source":"/shop","type":"order"}`,
		"the message is a batch of CloudEvents":    `[]`,
		"no idempotency key":                       `{"no":"key"}`,
		"the header content-type has a control ch": `{}`,
	}
	for part, body := range wrong {
		switch {
		case strings.Contains(part, "batch"):
			send(body, key, part, "content-type", "application/cloudevents-batch+json")
		case strings.Contains(part, "no idempotency"):
			send(body)
		case strings.Contains(part, "control"):
			send(body, key, part, "content-type", "a\tb\nc")
		default:
			send(body, key, part, "content-type", structured)
		}
	}
	large := strings.Repeat("x", 250<<10) // SQS counts the attributes, too
	send(large, key, "good")
	d := startDelivery(t, "--from", "sqs://"+name+"?region=us-east-1&endpoint="+endpoint, "--to", e.URL, "--store", "memory:", "--log-level", "error")
	eventually(t, "the good message has arrived", func() bool { return e.of("good") == hash(large) })
	reasons := []string{}
	eventually(t, "all others are in the dead letters", func() bool {
		out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: urls["-dead-letters"], MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}, VisibilityTimeout: 600})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			reason, _ := semelsqs.Decode("letters", &m).Header("semel-letter-error")
			reasons = append(reasons, reason)
		}
		return len(reasons) == len(wrong)
	})
	for part := range wrong {
		if !strings.Contains(strings.Join(reasons, "\n"), part) {
			t.Errorf("no letter says %q in\n%s", part, strings.Join(reasons, "\n"))
		}
	}
	if code := d.stop(); code != 0 || len(e.got) != 1 {
		t.Errorf("exit code %d, and the service got %d requests, want one", code, len(e.got))
	}
}
