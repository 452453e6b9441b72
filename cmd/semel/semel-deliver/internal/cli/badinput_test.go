//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/consume/semelamqp/amqptest"
	"github.com/semel-go/semel/consume/semelsqs/sqstest"
)

// fails starts the command, which ends by itself with an error that has all parts.
func fails(t *testing.T, args []string, parts ...string) {
	t.Helper()
	r := command(t, nil, append([]string{"--to", "http://127.0.0.1:1", "--store", "memory:", "--short-retention"}, args...)...)
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

func TestRun_QueueMissing_ExitCode1WithNextStep(t *testing.T) {
	t.Run("NATS", func(t *testing.T) {
		t.Parallel()
		b := openNATS(t)
		url := strings.TrimSuffix(b.args[1], "/ORDERS/billing")
		fails(t, []string{"--from", url + "/NOBODY/billing"}, `stream "NOBODY" does not exist; create it with: nats stream add NOBODY`)
		fails(t, []string{"--from", url + "/ORDERS/nobody"}, `consumer "nobody" of stream "ORDERS" does not exist; create it with: nats consumer add ORDERS nobody`)
	})
	t.Run("Kafka", func(t *testing.T) {
		t.Parallel()
		addr := kafkaAt(t)
		fails(t, []string{"--from", "kafka://" + addr + "/nobody", "--group", "billing"}, `topic "nobody": does not exist; create it with: kafka-topics.sh --create --topic nobody`)
		fails(t, []string{"--from", "kafka://" + addr + "/orders", "--group", "billing"}, `topic "dead-letters.billing": does not exist; create it with`)
	})
	t.Run("RabbitMQ", func(t *testing.T) {
		t.Parallel()
		fails(t, []string{"--from", amqptest.Shared(t).URL() + "?queue=nobody"}, `queue "nobody": does not exist; declare it`)
	})
	t.Run("SQS", func(t *testing.T) {
		t.Parallel()
		fails(t, []string{"--from", "sqs://nobody?region=us-east-1&endpoint=" + sqstest.URL(t)},
			`queue "nobody" does not exist in this account and region; create it with: aws sqs create-queue --queue-name nobody`, "--queue-name nobody-dead-letters")
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
