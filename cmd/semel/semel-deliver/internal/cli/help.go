package cli

import (
	"strings"

	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/address"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/deliver"
)

// description is the first line of the help.
const description = `Takes messages from a broker and sends each once to a service in any language, as a POST that is a CloudEvent. The service needs no line of Semel: it answers with a status. "semel deliver" starts this program.`

// Help implements kong.HelpProvider.
func (*options) Help() string {
	return `Examples:

    semel deliver --from 'kafka://127.0.0.1:9092/orders' --group billing --to http://127.0.0.1:3000/events
    semel deliver --from 'amqp://127.0.0.1?queue=orders' --short-retention --to http://127.0.0.1:3000/events --store sqlite:/var/lib/semel.db
    semel deliver --from 'nats://127.0.0.1/ORDERS/billing' --to http://127.0.0.1:3000/events --on-doubt park --reconcile-url http://127.0.0.1:3000/reconcile
    semel deliver --from 'pulsar://127.0.0.1/orders?subscription=billing' --short-retention --to http://127.0.0.1:3000/events
    semel deliver --from 'sqs://orders.fifo?region=eu-west-1' --to http://127.0.0.1:3000/events --store 'dynamodb://semel?region=eu-west-1'

Each option can also come from the environment, as SEMEL_ and its name (--admin-listen: SEMEL_ADMIN_LISTEN). SEMEL_FROM and SEMEL_HEADER keep passwords off the command line.

WHAT IS PROMISED

    on-doubt retry   each message reaches the service at least once, and after its
                     first final answer never again. After a crash, a timeout or a
                     5xx it may reach the service again, with the same
                     Idempotency-Key and a higher Semel-Fence: a service that
                     keeps the key with its effect has one effect.
    on-doubt park    nothing reaches the service again by itself once it may have
                     had an effect. The message goes to the quarantine, unless
                     --reconcile-url says what happened.

A duplicate is a message with the same key, of a producer that sends again or of a broker that delivers again. It is acknowledged, and not sent. A message is acknowledged after its outcome is stored.

WHAT THE ANSWER MEANS

    2xx, 302, 303          done: the message is acknowledged
    404, 409, 422 and      final: the message goes to the dead letters, with the
    most other 4xx         status and the beginning of the answer as the reason
    429, 503, 408, 425,    later: it is sent again after Retry-After (503 and
    423 and each 4xx with  other 4xx only if they have it). 503 stops all messages
    Retry-After            meanwhile, at most 30s, and then one tries; 429, too, or
                           with --scope header:NAME only those of its tenant
    401, 407, 301, 307 …   about this program, and not about the message: all
                           messages wait, and the log says why
    403, 402, 415 and      refused: it is sent again --max-attempts times with
    others that ask for    growing pauses, and then goes to the dead letters
    another request
    5xx, 499, silence,     doubt: --on-doubt decides
    a broken answer
    no connection          nothing was sent: all messages wait until there is one

A service that knows better says so: "Semel-Result: final" or "Semel-Result: no-effect". The page docs/deliver.md has the whole table.

WHERE THE MESSAGES ARE (--from)

` + indent(address.Choices) + `

Order is kept per key of a Kafka record, per message group of a FIFO queue, and in Pulsar per key (key-shared) or partition (failover, exclusive); --order says so for other brokers. No more messages are taken than --in-flight, and while a message waits for another of its key, at most 16 times as many; --max-bytes bounds their bodies. RabbitMQ with --order sends 17 times --in-flight messages ahead, whatever --max-bytes says.

TENANTS (--scope header:NAME, --tenant-requests)

At most --tenant-requests requests of a tenant run at once. Its further messages wait here, without a place of --concurrency and without an attempt, and messages of other tenants go on, as long as --max-bytes and 16 times --in-flight leave room for those that wait. An SQS queue with a redrive policy counts each receive; from it at most twice --concurrency messages are taken, so that a busy tenant can hold up others; besides these only messages whose key runs elsewhere, or whose part of the store is away, wait here. Messages of one --order stay in their order. A partition of Kafka is committed up to its first message that waits.

WHERE A MESSAGE HAS ITS KEY (--key)

` + indent(deliver.KeyChoices) + `

WHAT THE SERVICE GETS

    ce-id, ce-source, ce-type …   the attributes of the CloudEvent, as its producer
                          set them; or made of the message: id is its key, source
                          its topic or address, type is --event-type, and
                          partitionkey what orders it, if that is text
    Content-Type          of the data; if the message names none, application/json
                          for JSON and application/octet-stream for other bodies
    Idempotency-Key       the key, as a quoted string
    Semel-Fence           a number that grows with each attempt of a key; refuse
                          those that are lower than one you have seen
    Semel-Attempt         1 for the first
    Semel-Request-Digest  a hash of the message, equal for each attempt

With --mode structured the body is the whole event as application/cloudevents+json. An event in a format other than JSON stays as it is. A batch of events, and an event that lacks an attribute, go to the dead letters.

RECONCILING (--reconcile-url, with on-doubt park)

The question and the answers are the same as for semel proxy; "operation" is the group. "happened": true with a status from 400 on means that the message failed.

DEAD LETTERS AND QUARANTINE (--dead-letters, --quarantine)

A copy has the headers of the message and semel-letter-reason, semel-letter-code, semel-letter-error and others. To send it again, publish the copy to the first topic with the header semel-redrive, whose value says who does it and why.

ADMIN (--admin-listen)

    /healthz  200 while the process lives
    /readyz   200 while messages can be delivered: the broker has answered, the
              store answers, and no stop has begun; else 503
    /metrics  counts of decisions, by action and reason

SIGTERM, SIGINT and SIGHUP turn /readyz to 503, give back the messages that were not sent, and wait --drain for the answers to the others. Requests that are left then are given up, and their messages are in doubt. Exit codes: 0 stopped cleanly, 1 failed, 2 wrong options.`
}

// indent makes text a block that the help shows unchanged.
func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }
