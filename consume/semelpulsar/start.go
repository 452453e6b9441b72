package semelpulsar

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"
)

// open makes a link. The client's calls take no context, so that one that ends after ctx
// is undone.
func (s *Source) open(ctx context.Context) (*link, error) {
	l := newLink(s)
	done := make(chan error, 1)
	go func() { done <- l.connect() }()
	select {
	case err := <-done:
		if err != nil {
			l.abandon()
			return nil, err
		}
		return l, nil
	case <-ctx.Done():
		go func() {
			<-done //nolint:errcheck // the link is given up in any case
			l.abandon()
		}()
		return nil, ctx.Err()
	}
}

// connect opens the topics of the copies, and then subscribes.
func (l *link) connect() error {
	var errs []error
	for _, topic := range []string{l.s.opt.DeadLetters, l.s.opt.Quarantine} {
		if _, err := l.copies.open(context.Background(), topic); err != nil {
			if !isAnswer(err) {
				return explain(topic, err)
			}
			errs = append(errs, explain(topic, err))
		}
	}
	if err := l.subscribe(); err != nil {
		errs = append(errs, explain(l.s.subscribed, err))
	}
	return errors.Join(errs...)
}

// sendTimeout is how long the broker may take to store a copy.
const sendTimeout = 8 * time.Second

// openCopies makes the producer of a topic of copies, and the subscription that keeps
// them. It sends no batches, because a copy does not wait for another one, and splits a
// copy that is larger than the broker's limit.
func (s *Source) openCopies(topic string) (pulsar.Producer, error) {
	p, err := s.client.CreateProducer(pulsar.ProducerOptions{
		Topic: topic, DisableBatching: true, EnableChunking: true, SendTimeout: sendTimeout, BackOffPolicyFunc: newReconnects,
	})
	if err != nil {
		return nil, err
	}
	if err := s.keepCopies(topic); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// keepCopies makes the subscription that keeps the copies in a topic, if it does not exist. It
// takes no message; a topic with partitions needs a consumer that takes one of each, and gives
// it back.
func (s *Source) keepCopies(topic string) error {
	o := pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: s.opt.CopySubscription, Type: pulsar.Shared,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest, EnableZeroQueueConsumer: true,
	}
	c, err := s.client.Subscribe(o)
	if err != nil && has(err, "ZeroQueueConsumer is not supported") {
		o.EnableZeroQueueConsumer, o.ReceiverQueueSize = false, 1
		c, err = s.client.Subscribe(o)
	}
	switch {
	case err == nil:
		c.Close()
	case !isBusy(err): // a reader that has another type of subscription has made it
		return err
	}
	return nil
}

// keepCopiesSoon is keepCopies for a caller that waits until ctx ends, because the client's
// call takes no context.
func (s *Source) keepCopiesSoon(ctx context.Context, topic string) error {
	done := make(chan error, 1)
	go func() { done <- s.keepCopies(topic) }()
	select {
	case err := <-done:
		if err != nil {
			return explain(topic, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("topic %q: no answer yet about subscription %q, which keeps the copies: %w", topic, s.opt.CopySubscription, ctx.Err())
	}
}

// sentBack is how long the client keeps a message that it sends back. It looks for such
// messages in a third of that.
const sentBack = 300 * time.Millisecond

// subscribe makes the consumer.
func (l *link) subscribe() error {
	// The client panics after it could not subscribe to a partition that was added. So it looks
	// for none, and ask does.
	never := time.Duration(math.MaxInt64)
	exact := int64(0)
	c, err := l.s.client.Subscribe(pulsar.ConsumerOptions{
		Topic: l.s.subscribed, SubscriptionName: l.s.subscription, Type: l.s.opt.Type, Name: l.s.opt.Name,
		SubscriptionInitialPosition: l.s.position(), ReceiverQueueSize: l.s.opt.ReceiverQueue, MessageChannel: l.messages,
		NackRedeliveryDelay: sentBack, NackPrecisionBit: &exact,
		AckWithResponse: true, EnableBatchIndexAcknowledgment: true, AutoDiscoveryPeriod: never,
		EventListener: (*listener)(l), Interceptors: pulsar.ConsumerInterceptors{&l.arrivals}, BackOffPolicyFunc: newReconnects,
	})
	if err != nil {
		return err
	}
	l.consumer = c
	l.s.begun.Store(true)
	return nil
}

// position is where the subscription begins in a partition in which it is new. After the first
// subscription of a Serve, that is a partition that was added to the topic, so that all its
// messages are new. Usually Pulsar has subscribed the group already when it added the partition.
func (s *Source) position() pulsar.SubscriptionInitialPosition {
	if s.opt.Latest && !s.begun.Load() {
		return pulsar.SubscriptionPositionLatest
	}
	return pulsar.SubscriptionPositionEarliest
}

// tryPartitions subscribes to each partition of an exclusive subscription and closes that
// consumer again. Its error names a partition whose broker cannot be had: if the Source
// closed its consumer now, no partition would be read until that broker is back. A partition
// that still has its consumer answers that it is busy. When isOver reports true, it
// subscribes no more, because the subscription is for the next member.
func (s *Source) tryPartitions(isOver func() bool) error {
	if isOver() {
		return nil
	}
	partitions, err := s.client.TopicPartitions(s.subscribed)
	if err != nil {
		return explain(s.subscribed, err)
	}
	for _, topic := range partitions {
		if isOver() {
			return nil
		}
		c, err := s.client.Subscribe(pulsar.ConsumerOptions{
			Topic: topic, SubscriptionName: s.subscription, Type: s.opt.Type, SubscriptionInitialPosition: s.position(), ReceiverQueueSize: 1,
		})
		switch {
		case err == nil:
			c.Close()
		case !isBusy(err) && !isUnknownTopic(err): // reopen ends Serve because of an unknown topic
			return explain(topic, err)
		}
	}
	return nil
}

// listener hears which member of a failover subscription is active.
type listener link

// BecameActive implements pulsar.ConsumerEventListener. The client may call it before its
// consumer is whole, so that nothing can be asked of the consumer here.
func (l *listener) BecameActive(pulsar.Consumer, string, int32) {}

// BecameInactive implements pulsar.ConsumerEventListener: the broker sends the partition's
// messages to another member.
func (l *listener) BecameInactive(_ pulsar.Consumer, _ string, partition int32) {
	l.arrivals.revoke(partition, func() { l.unsettled.revoke(partition) })
}

// The first and the longest pause before the client connects again. Its own default goes
// up to a minute.
const (
	firstReconnect   = 100 * time.Millisecond
	longestReconnect = 5 * time.Second
)

// reconnects are the pauses between the tries of the client to connect.
type reconnects struct{ next time.Duration }

func newReconnects() backoff.Policy { return &reconnects{} }

// Next implements backoff.Policy.
func (r *reconnects) Next() time.Duration {
	r.next = min(max(2*r.next, firstReconnect), longestReconnect)
	return r.next - rand.N(r.next/4)
}

// IsMaxBackoffReached implements backoff.Policy.
func (r *reconnects) IsMaxBackoffReached() bool { return r.next >= longestReconnect }

// Reset implements backoff.Policy.
func (r *reconnects) Reset() { r.next = 0 }

// The client gives the broker's code in the text of an error only.
func has(err error, codes ...string) bool {
	for _, c := range codes {
		if strings.Contains(err.Error(), c) {
			return true
		}
	}
	return false
}

func isBusy(err error) bool { return has(err, "ConsumerBusy") }

func isUnknownTopic(err error) bool { return has(err, "TopicNotFound") }

// isAnswer reports whether an error is the broker's answer about one topic.
func isAnswer(err error) bool {
	return isBusy(err) || isUnknownTopic(err) || has(err, "server error", "AuthorizationError", "MetadataError")
}

// explain adds the next step to an error about a topic.
func explain(topic string, err error) error {
	namespace, _, _ := strings.Cut(strings.TrimPrefix(topic, persistent), "/")
	if i := strings.LastIndexByte(topic, '/'); i >= len(persistent) {
		namespace = topic[len(persistent):i]
	}
	// The client says only in its log that the broker has refused its credentials.
	next := "Pulsar gives no answer, or refuses the connection; check the client's URL, listener name and network, its TLS settings and its Authentication; " +
		"the client's log and the broker's say which"
	switch {
	case isBusy(err):
		next = "another consumer has the subscription, and one of the two is exclusive or of another type; " +
			"stop that one, or give all members the same Options.Type, such as pulsar.Failover"
	case isUnknownTopic(err):
		next = "does not exist, and the broker does not create it; create it with: pulsar-admin topics create " + topic +
			", and if the namespace does not exist, first with: pulsar-admin namespaces create " + namespace
	case has(err, "AuthenticationError"):
		next = "Pulsar refuses the credentials; check the client's Authentication"
	case has(err, "AuthorizationError"):
		next = "the role may not produce or consume here; allow it with: pulsar-admin namespaces grant-permission " + namespace + " --role ROLE --actions produce,consume"
	case has(err, "Namespace not found", "NamespaceNotFound", "Policies not found"):
		next = "the namespace does not exist; create it with: pulsar-admin namespaces create " + namespace
	case isAnswer(err):
		next = "Pulsar refuses it"
	}
	return fmt.Errorf("topic %q: %s: %w", topic, next, err)
}
