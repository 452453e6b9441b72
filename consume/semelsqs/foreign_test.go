package semelsqs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelsqs"
	"github.com/semel-go/semel/internal/proctest"
)

// errNoClient says that a client of another language is not to be had here.
var errNoClient = errors.New("testdata/fetch.sh has no client")

// fetched returns what testdata/fetch.sh prints for a part.
func fetched(t *testing.T, part string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "testdata/fetch.sh", part)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		proctest.Need(t, fmt.Errorf("%w: %s: %s", errNoClient, part, strings.TrimSpace(stderr.String())), errNoClient)
	}
	return strings.TrimSpace(string(out))
}

const (
	withBoto3 = `
import sys, boto3
c = boto3.client("sqs", endpoint_url=sys.argv[1])
c.send_message(QueueUrl=sys.argv[2], MessageBody=sys.argv[3], MessageGroupId="account-7", MessageDeduplicationId=sys.argv[4],
    MessageAttributes={"idempotency-key": {"DataType": "String", "StringValue": "k-1"}, "n": {"DataType": "Number", "StringValue": "7"},
        "bytes": {"DataType": "Binary", "BinaryValue": b"\x01key"}})
`
	// An import from a module finds no packages by NODE_PATH.
	withNode = `
const { SQSClient, SendMessageCommand } = require("@aws-sdk/client-sqs");
const [url, queue, body, id] = process.argv.slice(1);
new SQSClient({ endpoint: url }).send(new SendMessageCommand({ QueueUrl: queue, MessageBody: body, MessageGroupId: "account-7", MessageDeduplicationId: id,
    MessageAttributes: { "idempotency-key": { DataType: "String", StringValue: "k-1" }, n: { DataType: "Number", StringValue: "7" },
        bytes: { DataType: "Binary", BinaryValue: new TextEncoder().encode("\x01key") } } }));
`
	// Version 1 takes the bytes themselves, version 2 base64.
	withCLI = `{"idempotency-key": {"DataType": "String", "StringValue": "k-1"}, "n": {"DataType": "Number", "StringValue": "7"}, "bytes": {"DataType": "Binary", "BinaryValue": "\u0001key"}}`
)

// producers send a message by a client of another language. They take the endpoint, the
// queue, the body and the deduplication ID.
var producers = map[string]func(t *testing.T, args []string) *exec.Cmd{
	"boto3": func(t *testing.T, args []string) *exec.Cmd {
		return exec.Command(filepath.Join(fetched(t, "python"), "python3"), append([]string{"-c", withBoto3}, args...)...)
	},
	"AWS CLI": func(t *testing.T, args []string) *exec.Cmd {
		return exec.Command(filepath.Join(fetched(t, "python"), "aws"), "sqs", "send-message", "--endpoint-url", args[0], "--queue-url", args[1], "--message-body", args[2],
			"--message-deduplication-id", args[3], "--message-group-id", "account-7", "--message-attributes", withCLI)
	},
	"JavaScript": func(t *testing.T, args []string) *exec.Cmd {
		packages := filepath.Join(fetched(t, "node"), "node_modules")
		cmd := exec.Command("node", append([]string{"-e", withNode, "--"}, args...)...)
		cmd.Env = append(cmd.Environ(), "NODE_PATH="+packages)
		return cmd
	},
}

// A message of each client has the key that its producer gave it, and a repeat under
// another deduplication ID, which SQS delivers, has the same key and content.
func TestNext_MessageOfOtherLanguage_HasKeyGroupAndContent(t *testing.T) {
	for name, producer := range producers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, true)
			b.opt.OrderKey = nil
			s := source(t, b.client, b.name, &b.opt)
			const body = `{"id": "o-1", "text": "ä€😀"}`
			send := func(id string) *consume.Message {
				cmd := producer(t, []string{b.url, b.queue, body, id})
				cmd.Env = append(cmd.Environ(), "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				d := received(t, s)
				if err := d.Ack(t.Context()); err != nil {
					t.Fatal(err)
				}
				return d.Message()
			}
			one, two := send("d-1"), send("d-2")
			field, err := consume.JSONField("id")(&consume.Message{Origin: consume.Origin{Topic: b.name}, Body: []byte(`{"id":"o-1"}`)})
			if err != nil || !strings.HasSuffix(field, ":o-1") {
				t.Fatalf("the key of the field is %q, %v", field, err)
			}
			for _, c := range []struct {
				source consume.KeySource
				want   [2]string
			}{
				{consume.FromHeader(consume.KeyHeader), [2]string{"k-1", "k-1"}}, {consume.FromHeader("n"), [2]string{"7", "7"}},
				{consume.FromHeader("bytes"), [2]string{"\x01key", "\x01key"}}, {consume.JSONField("id"), [2]string{field, field}},
				{consume.FromHeader(semelsqs.DeduplicationIDHeader), [2]string{"d-1", "d-2"}},
			} {
				for i, m := range []*consume.Message{one, two} {
					if call, err := consume.Keyed("op", c.source)(m); err != nil || call.Key != c.want[i] {
						t.Errorf("message %d: the key is %q, %v; want %q", i, call.Key, err, c.want[i])
					}
				}
			}
			if one.OrderKey != "account-7" || string(one.Body) != body || string(two.Body) != body {
				t.Errorf("the order key is %q, the bodies are %q and %q", one.OrderKey, one.Body, two.Body)
			}
		})
	}
}
