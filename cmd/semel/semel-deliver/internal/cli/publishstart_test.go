package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/webhook"
)

// serveHTTP starts a server and returns its address.
func serveHTTP(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func TestPublish_InvalidInput_OneLineExitCode2(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	short := filepath.Join(dir, "short")
	if err := os.WriteFile(short, []byte("whsec_c2VjcmV0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(more ...string) []string { return append([]string{"--to", "nats://127.0.0.1:1"}, more...) }
	for want, args := range map[string][]string{
		`unknown flag --bogus`:             with("--bogus"),
		`--to: is required: the dest`:      {"--store", "sqlite:x"},
		`--to: "ftp": is no destination; `: {"--to", "ftp://a"},
		`--to: "pulsar": is no destination of this command; a program in Go sends to Pulsar: semelpulsar.NewSink`:               {"--to", "pulsar://127.0.0.1:6650"},
		`--to: "kafka://a/orders": names a topic, but messages name their own`:                                                  {"--to", "kafka://a/orders"},
		`--to: "nats://a/S": names a stream or a subject`:                                                                       {"--to", "nats://a/S"},
		`--to: "kafka://a": has a user, but sasl is not one of plain`:                                                           {"--to", "kafka://u:s3cret@a"},
		`--to: "amqp://a,b": has several hosts`:                                                                                 {"--to", "amqp://a,b"},
		`--to: "sqs://q": must be sqs://?region=NAME`:                                                                           {"--to", "sqs://q?region=x"},
		`--to: "start": is no option of kafka://`:                                                                               {"--to", "kafka://a?start=latest"},
		`--to: write an absolute URL without a user`:                                                                            {"--to", "https://u:s3cret@a/x"},
		`--topic: "orders": write NAME=WHERE once for each topic`:                                                               with("--topic", "orders"),
		`--topic: "a=c": write NAME=WHERE once for each topic`:                                                                  with("--topic", "a=b", "--topic", "a=c"),
		`--topic a: "ftp": is no destination`:                                                                                   with("--topic", "a=ftp://u:s3cret@b"),
		`--store: "redis://h/0": has no outbox; choose sqlite:PATH or postgres://`:                                              with("--store", "redis://h/0"),
		`--secret-file: "none": there is no such file; make it with: (umask 077; echo whsec_$(openssl rand -base64 32) > none)`: {"--to", "http://a", "--secret-file", "none"},
		`--secret-file: "` + short[:min(len(short), 80)]:                                                                        {"--to", "http://a", "--secret-file", short},
		`--header: is for destinations of http:// and https:// only; the options of nats://`:                                    with("--header", "A: b"),
		`--header: "webhook-id": is a header that this program sets itself`:                                                     {"--to", "http://a", "--header", "webhook-id: s3cret"},
		`--to-cert: "x": a certificate and its key belong together`:                                                             {"--to", "https://a", "--to-cert", "x"},
		`--to-ca: has no effect, because nothing is sent by TLS; write an https: URL`:                                           {"--to", "http://a", "--to-ca", "x"},
		`--in-flight: "5": must be from 256 to 1000000`:                                                                         with("--in-flight", "5"),
		`--lease: "1ms": must be from 1s to 1h0m0s`:                                                                             with("--lease", "1ms"),
		`--admin-listen: "nowhere": write host:port`:                                                                            with("--admin-listen", "nowhere"),
	} {
		r := command(t, nil, append([]string{"publish"}, args...)...)
		if r.code != program.ExitUsage || !strings.HasPrefix(r.stderr, "semel-deliver publish: "+want) || strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
			t.Errorf("%q: exit code %d\n got %s\nwant %s", args, r.code, r.stderr, want)
		}
		if strings.Contains(r.stderr, "s3cret") {
			t.Errorf("the password is shown: %s", r.stderr)
		}
	}
}

func TestPublish_HelpAndVariables(t *testing.T) {
	t.Parallel()
	help := command(t, nil, "publish")
	for _, want := range []string{"semel outbox publish --store postgres://", "WHAT IS PROMISED", "sqs://?region=NAME", "--no-listen"} {
		if help.code != program.ExitOK || !strings.Contains(help.stdout, want) {
			t.Errorf("no %s in the help:\n%s", want, help.stdout)
		}
	}
	if r := command(t, map[string]string{"SEMEL_TO": "ftp://a", "SEMEL_DRAIN": "0s"}, "publish"); r.code != program.ExitUsage || strings.Count(r.stderr, "\n") != 2 {
		t.Errorf("%+v", r)
	}
}

// Nothing answers: one start names the store and each destination, with the next step.
func TestPublish_NothingAnswers_OneStartNamesAll(t *testing.T) {
	t.Parallel()
	r := command(t, nil, "publish", "--store", "sqlite:"+filepath.Join(t.TempDir(), "none.db"), "--to", "kafka://127.0.0.1:1", "--topic", "a=amqp://u:s3cret@127.0.0.1:1",
		"--topic", "b=nats://127.0.0.1:1", "--topic", "c=http://127.0.0.1:1/x", "--topic", "d=sqs://?region=eu-west-1&endpoint=http://127.0.0.1:1")
	for _, want := range []string{
		"semel migrate --store sqlite:", "--to: kafka://127.0.0.1:1: no connection: ", "kcat -b 127.0.0.1:1 -L", "--topic a: amqp://127.0.0.1:1: no connection: ",
		"--topic b: nats://127.0.0.1:1: no connection: ", "--topic c: http://127.0.0.1:1/x: no connection: ", "curl -i http://127.0.0.1:1", "--topic d: sqs://: SQS gives no answer: ",
	} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in\n%s", want, r.stderr)
		}
	}
	if n := strings.Count(r.stderr, "semel-deliver publish: "); r.code != program.ExitFailed || n != 6 || strings.Contains(r.stderr, "s3cret") {
		t.Errorf("exit code %d, %d lines:\n%s", r.code, n, r.stderr)
	}
}

// A wrong password ends the start. It is not taken for an outage.
func TestPublish_WrongPassword_EndsStart(t *testing.T) {
	s := newShop(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "ann", "right"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	n, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, Username: "ann", Password: "right", JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	t.Cleanup(n.Shutdown)
	if !n.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server is not ready")
	}
	rabbit := strings.Replace(amqptest.Shared(t).URL(), "guest:guest", "guest:s3cret", 1)
	for to, want := range map[string]string{
		"kafka://ann:s3cret@" + cluster.ListenAddrs()[0] + "?sasl=plain": "no connection: ", // kfake says no more
		"nats://ann:s3cret@" + n.Addr().String():                         "Authorization Violation",
		rabbit:                                                           "username or password",
	} {
		r := command(t, nil, "publish", "--store", s.url, "--to", to)
		if r.code != program.ExitFailed || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, "check the user") || strings.Contains(r.stderr, "s3cret") {
			t.Errorf("%s: exit code %d\n%s", to, r.code, r.stderr)
		}
	}
	r := startDelivery(t, "publish", "--store", s.url, "--to", "kafka://ann:right@"+cluster.ListenAddrs()[0]+"?sasl=plain")
	r.find(t, `(msg=publishing)`)
}

// A topic that does not exist delays its own messages. The log says how to create it, and
// then they go on.
func TestPublish_UnknownTopic_WaitsUntilItExists(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	addr := cluster.ListenAddrs()[0]
	d, s := &destination{}, newShop(t)
	d.readKafka(t, addr, "orders", "missing")
	p := startDelivery(t, "publish", "--store", s.url, "--to", "kafka://"+addr)
	for n := range 3 {
		s.put(t, outbox.Message{Topic: "missing", OrderKey: "key0", ID: fmt.Sprint("key0-", n)}, outbox.Message{Topic: "orders", OrderKey: "key1", ID: fmt.Sprint("key1-", n)})
	}
	p.find(t, `(kafka-topics --create --topic missing)`)
	eventually(t, "the messages of the other topic have arrived", func() bool { return len(d.firsts("key1")) == 3 })
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, nil, "missing"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all messages have arrived", func() bool { return d.distinct() == 6 })
	d.check(t, 2, 3)
}

// A webhook is signed and has the headers of the command line; a message that is refused
// for good is counted in the metrics until an operator decides.
func TestPublish_Webhook_SignedCountedAndQuarantined(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var wrong, gone atomic.Int64
	receiver := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = webhook.Verify([]byte("0123456789abcdef0123456789abcdef"), r.Header, body, time.Now())
		}
		if err != nil || r.Header.Get("Authorization") != "Bearer x" || r.URL.Path != "/hook" {
			wrong.Add(1)
		}
		if string(body) == "bad" {
			gone.Add(1)
			w.WriteHeader(http.StatusGone)
		}
	})
	s := newShop(t)
	s.put(t, outbox.Message{Topic: "orders", OrderKey: "ann", ID: "a1", Body: []byte("bad")}, outbox.Message{Topic: "orders", OrderKey: "ann", ID: "a2"},
		outbox.Message{Topic: "orders", OrderKey: "bob", ID: "b1", Body: []byte("good")})
	p := startDelivery(t, "publish", "--store", s.url, "--to", "nats://"+natsServer(t).Addr().String(), "--topic", "orders="+receiver+"/hook", "--secret-file", file,
		"--header", "Authorization: Bearer x", "--admin-listen", "127.0.0.1:0")
	adminURL := "http://" + p.find(t, `msg="admin listening" addr=(\S+)`)
	eventually(t, "the metrics have the messages", func() bool {
		_, text := get(t, adminURL+"/metrics")
		for _, line := range []string{
			"semel_outbox_waiting_messages 0\n", "semel_outbox_held_messages 1\n", "semel_outbox_quarantined_messages 1\n", "semel_outbox_stopped_keys 1\n",
			"semel_outbox_sent_total 1\n", `semel_outbox_events_total{event="quarantined"} 1` + "\n", `semel_outbox_events_total{event="lane_lost"} 0` + "\n",
			"semel_outbox_lanes 16\n", "semel_ready 1\n",
		} {
			if !strings.Contains(text, line) {
				return false
			}
		}
		return !strings.Contains(text, "semel_outbox_oldest_seconds 0\n") // a2 waits for a1
	})
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, text := get(t, adminURL+path); status != 200 {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if code := p.stop(); code != 0 || wrong.Load() > 0 || gone.Load() != 1 {
		t.Errorf("exit code %d, %d wrong requests, the refused message was sent %d times", code, wrong.Load(), gone.Load())
	}
}

// A publisher that stops gives its lanes back, so that the next one begins at once.
func TestPublish_Stopped_NextOneTakesLanesAtOnce(t *testing.T) {
	t.Parallel()
	d, s := toNATS(t), newShop(t)
	args := append([]string{"publish", "--store", s.url, "--lease", "1h"}, d.args...)
	for n := range 3 {
		p := startDelivery(t, args...)
		s.put(t, outbox.Message{Topic: d.topic, OrderKey: "key0", ID: fmt.Sprint("key0-", n)})
		eventually(t, "the message has arrived", func() bool { return d.distinct() == n+1 })
		if code := p.stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	d.check(t, 1, 3)
}
