//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
)

// fails starts the command, which ends by itself with an error that has all parts.
func fails(t *testing.T, args []string, parts ...string) {
	t.Helper()
	r := command(t, nil, append([]string{"--to", "http://127.0.0.1:1", "--store", "memory:", "--short-retention"}, args...)...)
	if strings.Contains(r.stderr, "msg=delivering") {
		t.Errorf("it says that it delivers:\n%s", r.stderr)
	}
	for _, part := range parts {
		if r.code != program.ExitFailed || !strings.Contains(r.stderr, part) {
			t.Errorf("exit code %d, want %d and %q in\n%s", r.code, program.ExitFailed, part, r.stderr)
		}
	}
	if strings.Contains(r.stderr, "s3cret") {
		t.Errorf("the password is shown: %s", r.stderr)
	}
}

// kafkaAt is the address of a broker in this process.
func kafkaAt(t *testing.T, o ...kfake.Opt) string {
	t.Helper()
	cluster, err := kfake.NewCluster(append(o, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}

// withoutCopies makes a stream with a consumer, and no stream for copies.
func withoutCopies(t *testing.T, url string) {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateConsumer(t.Context(), "ORDERS", jetstream.ConsumerConfig{Durable: "nobody", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1}); err != nil {
		t.Fatal(err)
	}
}

// All that a broker lacks is named at once, with the commands, before the program says that
// it delivers.
func TestRun_QueueMissing_ExitCode1WithNextStep(t *testing.T) {
	t.Run("NATS", func(t *testing.T) {
		t.Parallel()
		b := openNATS(t)
		url := strings.TrimSuffix(b.args[1], "/ORDERS/billing")
		fails(t, []string{"--from", url + "/NOBODY/billing"}, `stream "NOBODY" does not exist; create it with: nats stream add NOBODY --subjects`, "nats consumer add NOBODY billing --pull")
		fails(t, []string{"--from", url + "/ORDERS/nobody"}, `consumer "nobody" of stream "ORDERS" does not exist; create it with: nats consumer add ORDERS nobody`)
		copies := "no stream takes dead-letters.nobody and quarantine.nobody, so copies would be lost; create one with: nats stream add nobody-copies --subjects 'dead-letters.nobody,quarantine.nobody' --defaults"
		alone := natsServer(t)
		fails(t, []string{"--from", alone.ClientURL() + "/NOBODY/nobody"}, `stream "NOBODY" does not exist`, `consumer "nobody" of stream "NOBODY" does not exist`, copies)
		withoutCopies(t, alone.ClientURL())
		fails(t, []string{"--from", alone.ClientURL() + "/ORDERS/nobody"}, copies)
	})
	t.Run("Kafka", func(t *testing.T) {
		t.Parallel()
		addr := kafkaAt(t)
		fails(t, []string{"--from", "kafka://" + addr + "/nobody", "--group", "billing"}, `topic "nobody": does not exist; create it with: kafka-topics.sh --create --topic nobody`)
		fails(t, []string{"--from", "kafka://" + addr + "/orders", "--group", "billing"},
			`topic "dead-letters.billing": does not exist; create it with: kafka-topics.sh --create --topic dead-letters.billing`, `topic "quarantine.billing": does not exist; create it with`)
	})
	t.Run("RabbitMQ", func(t *testing.T) {
		t.Parallel()
		fails(t, []string{"--from", amqptest.Shared(t).URL() + "?queue=nobody&declare=nothing"},
			`queue "nobody": does not exist; declare it with: rabbitmqadmin declare queue name=nobody durable=true arguments='{"x-dead-letter-exchange":""`,
			`queue "nobody.dead-letters": does not exist; declare it with: rabbitmqadmin declare queue name=nobody.dead-letters durable=true arguments='{"x-overflow":"reject-publish","x-queue-type":"quorum"}'`,
			`queue "nobody.quarantine": does not exist`)
	})
	t.Run("SQS", func(t *testing.T) {
		t.Parallel()
		fails(t, []string{"--from", "sqs://nobody?region=us-east-1&endpoint=" + sqstest.URL(t)},
			`queue "nobody" does not exist in this account and region; create it with: aws sqs create-queue --queue-name nobody`, "--queue-name nobody-dead-letters", "--queue-name nobody-quarantine")
	})
}

func TestRun_CredentialsRefused_ExitCode1WithNextStep(t *testing.T) {
	t.Run("NATS", func(t *testing.T) {
		t.Parallel()
		s := natsServer(t, func(o *server.Options) { o.Username, o.Password = "ann", "right" })
		fails(t, []string{"--from", "nats://ann:s3cret@" + strings.TrimPrefix(s.ClientURL(), "nats://") + "/ORDERS/billing"}, "check the user, the password and tls")
	})
	t.Run("Kafka", func(t *testing.T) {
		t.Parallel()
		addr := kafkaAt(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "ann", "right"))
		fails(t, []string{"--from", "kafka://ann:s3cret@" + addr + "/orders?sasl=plain", "--group", "billing"}, "see whether one runs there, and check TLS, the user and the password")
	})
	t.Run("RabbitMQ", func(t *testing.T) {
		t.Parallel()
		_, at, _ := strings.Cut(amqptest.Shared(t).URL(), "@")
		fails(t, []string{"--from", "amqp://ann:s3cret@" + at + "?queue=orders"}, "username or password not allowed")
	})
}

// AWS's client asks many places for credentials, and its error names none of them.
func TestRun_NoCredentialsOfAWS_ExitCode1WithNextStep(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	} {
		t.Setenv(name, value)
	}
	fails(t, []string{"--from", "sqs://orders?region=us-east-1&endpoint=http://127.0.0.1:1"}, `queue "orders": the client has no credentials; set AWS_PROFILE`)
}
