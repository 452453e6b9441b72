package semelpulsar

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// Options configures a Source. Nil and zero fields mean the defaults.
type Options struct {
	// Type is the type of the subscription: pulsar.Exclusive by default, as in the
	// client. All members must have the same.
	Type pulsar.SubscriptionType
	// Name is this member's name in the broker's statistics. By default the client
	// makes one.
	Name string
	// Latest: if the subscription is new, it begins after the newest message of the
	// topic. By default it begins with the oldest one that the topic keeps. A partition that
	// is added later is read from its first message: Pulsar subscribes the group when it adds
	// the partition, and a Source that is subscribed asks for the first message.
	Latest bool
	// DeadLetters and Quarantine are the topics that copies are sent to: by default
	// the topic, "-", the subscription, and "-DLQ" or "-quarantine".
	DeadLetters, Quarantine string
	// CopySubscription is the subscription that keeps the copies in these topics until
	// somebody reads them: "semel" by default. Serve creates it, because Pulsar deletes
	// the messages of a topic without a subscription. If somebody deletes it later, Serve
	// makes it again before a copy; copies of the first 5 s may be lost.
	CopySubscription string
	// OrderKey returns the order key of a message; key is the message's ordering key or,
	// if it has none, its key. Nil: ByKey in a key-shared subscription, ByPartition in
	// an exclusive or a failover subscription, and no order in a shared one. It is
	// called before m.Key is set, and must not panic.
	OrderKey func(m *consume.Message, key string) string
	// ReceiverQueue is how many messages of each partition the client takes ahead, and
	// how many of all partitions are ready for Serve: 100 by default, from 1 to 10,000.
	// Their bodies are in memory.
	ReceiverQueue int
	// Horizon is the message TTL of the topic, which a client cannot ask for:
	// driver.Forever by default, as in Pulsar. Serve refuses to start if it is longer
	// than the consumer's Retention: see consume.Options.AllowShortRetention.
	Horizon time.Duration
}

// ByKey is an OrderKey: messages with the same key run one at a time, in their order. A
// message without a key has no order.
func ByKey(_ *consume.Message, key string) string { return key }

// ByPartition is an OrderKey: the messages of a topic, or of each partition of it, run
// one at a time, in their order.
func ByPartition(m *consume.Message, _ string) string {
	return fmt.Sprint("partition ", m.Origin.Partition)
}

func noOrder(*consume.Message, string) string { return "" }

const (
	defaultReceiverQueue = 100
	maxReceiverQueue     = 10_000
)

func (o *Options) withDefaults(topic, subscription string) Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.DeadLetters = fullName(cmp.Or(d.DeadLetters, topic+"-"+subscription+"-DLQ"))
	d.Quarantine = fullName(cmp.Or(d.Quarantine, topic+"-"+subscription+"-quarantine"))
	d.CopySubscription = cmp.Or(d.CopySubscription, "semel")
	d.ReceiverQueue = cmp.Or(d.ReceiverQueue, defaultReceiverQueue)
	d.Horizon = cmp.Or(d.Horizon, driver.Forever)
	if d.OrderKey == nil {
		switch d.Type {
		case pulsar.KeyShared:
			d.OrderKey = ByKey
		case pulsar.Shared:
			d.OrderKey = noOrder
		default:
			d.OrderKey = ByPartition
		}
	}
	return d
}

// check reports every mistake in the options. The defaults must be set.
func (o *Options) check(topic string) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Type < pulsar.Exclusive || o.Type > pulsar.KeyShared {
		bad("Type: is %d; set it to pulsar.Exclusive, Failover, Shared or KeyShared", o.Type)
	}
	if o.ReceiverQueue < 1 || o.ReceiverQueue > maxReceiverQueue {
		bad("ReceiverQueue: is %d; it must be from 1 to %d", o.ReceiverQueue, maxReceiverQueue)
	}
	if o.Horizon < 0 {
		bad("Horizon: is %v; it must not be negative; set it to the topic's message TTL, or leave it zero if it has none", o.Horizon)
	}
	for name, copies := range map[string]string{"DeadLetters": o.DeadLetters, "Quarantine": o.Quarantine} {
		if err := checkTopic(copies); err != nil {
			bad("%s: %w", name, err)
		} else if baseName(copies) == topic {
			bad("%s: is %q, the topic that is consumed, so copies would be consumed, too; name another topic", name, copies)
		}
	}
	if o.DeadLetters == o.Quarantine {
		bad("DeadLetters and Quarantine: are both %q; name two topics", o.DeadLetters)
	}
	return errors.Join(errs...)
}

const persistent = "persistent://"

// fullName is the name of a topic with its tenant and namespace, as the client
// completes it: "orders" is "persistent://public/default/orders".
func fullName(topic string) string {
	switch {
	case topic == "" || strings.Contains(topic, "://"):
		return topic
	case strings.Count(topic, "/") == 2:
		return persistent + topic
	case !strings.Contains(topic, "/"):
		return persistent + "public/default/" + topic
	}
	return topic
}

// partitionMark is between the name of a topic and the number of a partition of it.
const partitionMark = "-partition-"

// baseName is the full name of a topic without the number of its partition.
func baseName(topic string) string {
	i := strings.LastIndex(topic, partitionMark)
	if i < 0 || strings.Trim(topic[i+len(partitionMark):], "0123456789") != "" {
		return topic
	}
	return topic[:i]
}

// checkTopic reports what is wrong with the full name of a topic.
func checkTopic(topic string) error {
	name, isPersistent := strings.CutPrefix(topic, persistent)
	parts := strings.Split(name, "/")
	empty := false
	for _, p := range parts {
		empty = empty || p == ""
	}
	switch {
	case topic == "":
		return errors.New(`must not be empty; give the name of a topic, such as "orders" or "persistent://tenant/namespace/orders"`)
	case strings.HasPrefix(topic, "non-persistent://"):
		return fmt.Errorf("is %q; Pulsar keeps no message of a non-persistent topic, so that a failed one is lost; use a persistent topic", topic)
	case !isPersistent || len(parts) < 3 || len(parts) > 4 || empty:
		return fmt.Errorf(`is %q; it must be a name such as "orders", "tenant/namespace/orders" or "persistent://tenant/namespace/orders"`, topic)
	}
	return nil
}
