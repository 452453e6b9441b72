package address

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

func TestParse_Address_NamesGroupAndHidesPassword(t *testing.T) {
	for text, want := range map[string]struct {
		o                  Options
		group, kind, shown string
	}{
		"kafka://a:9092,b,[::1]:9093/orders,payments?start=latest&out-of-range=earliest&horizon=24h&instance-id=i&session-timeout=10s": {Options{Group: "billing"}, "billing", "kafka", "kafka://a:9092,b,[::1]:9093/orders,payments"},
		"kafka://ann:s%40cret@a/orders?sasl=scram-sha-512&tls=true":                                                                    {Options{Group: "billing", Order: "none"}, "billing", "kafka", "kafka://a/orders"},
		"amqp://ann:secret@a:5672/shop?queue=orders&heartbeat=10&declare=all&single-active=true":                                       {Options{Order: "routing-key"}, "orders", "amqp", "amqp://a:5672/shop/orders"},
		"amqps://a?queue=orders&kind=classic":                                                                                          {Options{Group: "billing", Order: "header:x"}, "billing", "amqp", "amqps://a/orders"},
		"nats://ann:secret@a:4222,b/ORDERS/billing":                                                                                    {Options{Order: "subject"}, "billing", "nats", "nats://a:4222,b/ORDERS/billing"},
		"nats://token@a/ORDERS/billing?tls=true":                                                                                       {Options{Group: "g"}, "g", "nats", "nats://a/ORDERS/billing"},
		"pulsar://token@a,b:6651/orders?subscription=billing&type=shared&start=latest&timeout=10s&receiver-queue=5&listener=out":       {Options{Order: "key"}, "billing", "pulsar", "pulsar://a,b:6651/orders/billing"},
		"pulsar://ann:secret@a/shop/eu/orders?subscription=billing&type=failover&horizon=24h&tls=true":                                 {Options{Group: "g", Order: "partition"}, "g", "pulsar", "pulsar+ssl://a/shop/eu/orders/billing"},
		"pulsar+ssl://a/orders?subscription=billing&type=exclusive":                                                                    {Options{Order: "header:x"}, "billing", "pulsar", "pulsar+ssl://a/orders/billing"},
		"sqs://orders.fifo?region=eu-west-1&endpoint=http://127.0.0.1:9324&visibility=30s":                                             {Options{}, "orders.fifo", "sqs", "sqs://orders.fifo"},
	} {
		b, err := Parse(text, &want.o)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if b.Group != want.group || b.Kind != want.kind || b.String() != want.shown {
			t.Errorf("%s: group %q, kind %q, shown as %s", text, b.Group, b.Kind, b)
		}
	}
}

func TestParse_Mistake_ErrorNamesFlagValueAndNextStep(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g := Options{Group: "billing"}
	for want, c := range map[string]struct {
		text string
		o    Options
	}{
		`--from: is required: the broker, such as kafka://`:                                                            {"", g},
		`--from: "mysql": is no broker; choose amqp://, amqps://, kafka://, nats://, pulsar://, pulsar+ssl://, sqs://`: {"mysql://a/b", g},
		`--from: "127.0.0.1": is no broker`:                                                                            {"127.0.0.1", g},
		`--from: "pulsar://a": must name one topic after the hosts`:                                                    {"pulsar://a?subscription=s", g},
		`--from: "pulsar://a/x/y": must name one topic after the hosts`:                                                {"pulsar://a/x/y?subscription=s", g},
		`--from: "pulsar://a/x//y": must name one topic after the hosts`:                                               {"pulsar://a/x//y?subscription=s", g},
		`--from: "pulsar://a/x": must name the subscription`:                                                           {"pulsar://a/x", g},
		`--from: "pulsar://a/x": has type=queue; choose key-shared, shared, failover, exclusive`:                       {"pulsar://a/x?subscription=s&type=queue", g},
		`--from: "pulsar://a/x": has receiver-queue=0; write a number from 1 to 10000`:                                 {"pulsar://a/x?subscription=s&receiver-queue=0", g},
		`--from: "pulsar://a/x": semelpulsar: ReceiverQueue: is 20000`:                                                 {"pulsar://a/x?subscription=s&receiver-queue=20000", g},
		`--from: "pulsar://a/x": has timeout=soon; write a time`:                                                       {"pulsar://a/x?subscription=s&timeout=soon", g},
		`--from: "pulsar://a:x/x": has the host "a:x", which is none; write host:port`:                                 {"pulsar://a:x/x?subscription=s", g},
		`--from: "pulsar://a/x": has a user and token-file; give one of them`:                                          {"pulsar://t@a/x?subscription=s&token-file=" + empty, g},
		`--from: "pulsar://a/x": has token-file=` + none + `: there is no such file; see what is there with: ls -l `:   {"pulsar://a/x?subscription=s&token-file=" + none, g},
		`--from: "pulsar://a/x": has token-file=` + empty + `, which is empty`:                                         {"pulsar://a/x?subscription=s&token-file=" + empty, g},
		`--from: "pulsar://a/x": semelpulsar: DeadLetters and Quarantine: are both`:                                    {"pulsar://a/x?subscription=s", Options{DeadLetters: "y", Quarantine: "y"}},
		`--order: "subject": choose key, none, partition, header:NAME`:                                                 {"pulsar://a/x?subscription=s", Options{Order: "subject"}},
		`--from: "kafka://a": must name the topics after the hosts`:                                                    {"kafka://a", g},
		`--from: "kafka://a/x,": has an empty topic`:                                                                   {"kafka://a/x,", g},
		`--group: is required with kafka://: the consumer group, such as billing`:                                      {"kafka://a/x", Options{}},
		`--from: "kafka://…": has no host`:                                                                             {"kafka:///x", g},
		`--from: "kafka://a:x/x": has the host "a:x", which is none`:                                                   {"kafka://a:x/x", g},
		`--from: "kafka://a/x": has start=never; choose earliest, latest`:                                              {"kafka://a/x?start=never", g},
		`--from: "kafka://a/x": has a user, but sasl is not one of plain`:                                              {"kafka://u:p@a/x", g},
		`--from: "kafka://a/x": has sasl=plain, but no user`:                                                           {"kafka://a/x?sasl=plain", g},
		`--from: "kafka://a/x": has horizon=soon; write a time`:                                                        {"kafka://a/x?horizon=soon", g},
		`--from: "topic": is no option of kafka://`:                                                                    {"kafka://a/x?topic=y", g},
		`--from: "kafka://…": has start twice`:                                                                         {"kafka://a/x?start=latest&start=latest", g},
		`--from: "kafka://…": has a query that cannot be read`:                                                         {"kafka://a/x?start=%zz", g},
		`--from: "kafka://a/x": has ca=` + none + `: there is no such file; see what is there with: ls -l `:            {"kafka://a/x?ca=" + none, g},
		`--from: "kafka://a/x": has ca=` + empty + `, which has no certificate`:                                        {"kafka://a/x?ca=" + empty, g},
		`--from: "kafka://a/x": has cert=` + empty + ` and key=` + empty + `, which cannot be used`:                    {"kafka://a/x?cert=" + empty + "&key=" + empty, g},
		`--order: "subject": choose key, none, header:NAME`:                                                            {"kafka://a/x", Options{Group: "g", Order: "subject"}},
		`--from: "amqp://a": must name the queue`:                                                                      {"amqp://a", Options{}},
		`--from: "amqp://a,b": has several hosts`:                                                                      {"amqp://a,b?queue=q", Options{}},
		`--from: "amqp://a": semelamqp: Options.SingleActive: needs DeclareAll`:                                        {"amqp://a?queue=q&single-active=true", Options{}},
		`--from: "amqp://a": has prefetch=0; write a number from 1 to 65535`:                                           {"amqp://a?queue=q&prefetch=0", Options{}},
		`--from: "amqp://a": semelamqp: Options.Prefetch: is 70000`:                                                    {"amqp://a?queue=q&prefetch=70000", Options{}},
		`--order: "key": choose none, routing-key, header:NAME`:                                                        {"amqp://a?queue=q", Options{Order: "key"}},
		`--from: "nats://a/ORDERS": must name a stream and a durable consumer`:                                         {"nats://a/ORDERS", Options{}},
		`--order: "header:": choose none, subject, header:NAME`:                                                        {"nats://a/S/c", Options{Order: "header:"}},
		`--from: "sqs://a/b": must be sqs://QUEUE?region=NAME`:                                                         {"sqs://a/b", Options{}},
		`--from: "sqs://a": semelsqs: Visibility: is 500ms`:                                                            {"sqs://a?visibility=500ms", Options{}},
		`--from: "sqs://a": semelsqs: DeadLetters and Quarantine: are both "x"`:                                        {"sqs://a", Options{DeadLetters: "x", Quarantine: "x"}},
	} {
		_, err := Parse(c.text, &c.o)
		if err == nil || !input.Is(err) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", c.text, err, want)
		}
	}
}

func TestParse_PasswordInMistake_IsNotShown(t *testing.T) {
	for _, text := range []string{"kafka://u:s3cret@a/x", "amqp://u:s3cret@a", "nats://u:s3cret@a", "sqs://u:s3cret@a", "pulsar://s3cret@a", "pulsar://u:s3cret@a/x", "pulsar://s3cret@a:x/x?subscription=s", "mysql://u:s3cret@a", "kafka://u:s3cret%zz@a/x"} {
		if _, err := Parse(text, &Options{Group: "g"}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// No broker is there: the error says where it was looked for, and does not show the
// password.
func TestOpen_NoServer_ErrorNamesNextStep(t *testing.T) {
	b, err := Parse("nats://u:s3cret@127.0.0.1:1/ORDERS/billing", &Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = b.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "see whether the server runs at 127.0.0.1:1") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v", err)
	}
}

// A message that waits stops its partition later if more messages may wait.
func TestKafkaOptions_InFlight_SetsOutstanding(t *testing.T) {
	for inFlight, want := range map[int]int{1: 1000, 256: 4352} {
		a, err := split("kafka", "127.0.0.1/orders")
		if err != nil {
			t.Fatal(err)
		}
		k, err := a.kafkaOptions(&Options{Group: "billing", InFlight: inFlight})
		if err != nil || k.Outstanding != want {
			t.Errorf("with --in-flight %d Outstanding is %+v, %v; want %d", inFlight, k, err, want)
		}
	}
}

// RabbitMQ bounds the messages that it sends ahead by their number only, so that --max-bytes says
// nothing about them.
func TestPrefetch_Option_BoundsMessages(t *testing.T) {
	for _, c := range []struct {
		text, order string
		want        int
	}{{"", "", 0}, {"", "none", 0}, {"", "routing-key", 17 * 256}, {"&prefetch=20", "", 20}, {"&prefetch=20", "routing-key", 20}} {
		a, err := split("amqp", "127.0.0.1?queue=orders"+c.text)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := a.prefetch(&Options{Order: c.order, InFlight: 256}); n != c.want || err != nil {
			t.Errorf("%q with --order %q: %d, %v; want %d", c.text, c.order, n, err, c.want)
		}
	}
}
