package cli

import "github.com/semel-go/semel/cmd/semel/semel-deliver/internal/address"

// publishDescription is the first line of the help of publish.
const publishDescription = `Sends the messages of an outbox to a broker or to a webhook, each at least once, in order for each order key. "semel outbox publish" starts this program.`

// Help implements kong.HelpProvider.
func (*publishOptions) Help() string {
	return `Examples:

    semel outbox publish --store postgres://app@db/shop --to kafka://127.0.0.1:9092
    semel outbox publish --store sqlite:/var/lib/shop.db --to nats://127.0.0.1:4222 --topic orders=shop.orders
    semel outbox publish --store postgres://app@db/shop --to amqp://127.0.0.1 --topic invoices=https://example.org/hook --secret-file webhook.secret

Each option can also come from the environment, as SEMEL_ and its name (--admin-listen: SEMEL_ADMIN_LISTEN). SEMEL_TO and SEMEL_HEADER keep passwords off the command line.

Run one process or more: they share the messages, and if one dies, the others take over after --lease. All of them need the same --to and --topic, because each of them sends messages of all topics.

WHAT IS PROMISED (at least once)

Each message whose transaction has committed is sent until the destination acknowledges it. Messages with one topic and one order key are sent in the order of the commits. A message may be sent again, with the same idempotency-key. The page docs/outbox.md has the details, and the settings with which a broker may lose what it has acknowledged.

WHERE MESSAGES GO (--to, --topic)

` + indent(address.SinkChoices) + `

--topic orders=shop.orders sends the messages of the topic orders under another name. --topic hooks=https://example.org/hook sends them to another destination, of any kind. Other topics go to --to under their own name.

Webhooks are signed as the specification Standard Webhooks says. Each answer other than 2xx delays the message; 400, 405, 410, 413, 414, 415, 422, 431 and 501 send it to the quarantine.

A MESSAGE FAILS (quarantine)

The later messages of its order key wait, and it is sent again after 1s, 2s, 4s … 1min. The log says why, and how to mend it. A message that the destination will never accept goes to the quarantine: see semel outbox list, retry and drop.

ADMIN (--admin-listen)

    /healthz  200 while the process lives
    /readyz   200 while messages can be published: the destination has answered
              at the start, the store answers, and no stop has begun; else 503
    /metrics  semel_outbox_oldest_seconds, semel_outbox_waiting_messages,
              semel_outbox_quarantined_messages, semel_outbox_sent_total and others

SIGTERM, SIGINT and SIGHUP turn /readyz to 503, and wait --drain for messages that are being sent. If the store or the destination does not answer at the start, the process ends: its supervisor starts it again. Exit codes: 0 stopped cleanly, 1 failed, 2 wrong options.`
}
