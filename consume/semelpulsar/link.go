package semelpulsar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/semel-go/semel/consume/driver"
)

// link is a consumer of the subscription, with the producers of the copies.
type link struct {
	s         *Source
	consumer  pulsar.Consumer
	copies    producers
	messages  chan pulsar.ConsumerMessage
	arrivals  arrivals
	unsettled unsettled
	acks      acks

	// These belong to the goroutine in Next.
	asked time.Time           // when the last probe ended; without one, when the link was made
	probe *probe              // nil: none runs
	heard map[int32]time.Time // when a message last came, by the partition
	sent  map[int32]resent    // by the partition

	trying      chan struct{} // has a value while partitions are tried
	abandoned   chan struct{}
	abandonOnce sync.Once
	closed      chan struct{}
	closeOnce   sync.Once
}

func newLink(s *Source) *link {
	l := &link{
		s: s, messages: make(chan pulsar.ConsumerMessage, s.opt.ReceiverQueue), asked: time.Now(), heard: map[int32]time.Time{}, sent: map[int32]resent{},
		trying: make(chan struct{}, 1), abandoned: make(chan struct{}), closed: make(chan struct{}),
	}
	redeliver := func(id pulsar.MessageID) { l.consumer.NackID(id) }
	l.unsettled = unsettled{redeliver: redeliver, entries: map[place]*entry{}}
	l.arrivals = arrivals{unread: map[int32][]pulsar.MessageID{}}
	if !s.inOrder() {
		l.arrivals.refuse = l.unsettled.refuse
	}
	l.copies = producers{create: s.openCopies}
	l.acks = acks{over: l.abandoned, partitions: map[int32]*partitionAcks{}, send: func(ids []pulsar.MessageID) error { return l.consumer.AckIDList(ids) }}
	return l
}

// next takes up to limit messages, and waits for the first.
func (l *link) next(ctx context.Context, limit int, wait time.Duration) (ds []driver.Delivery, _ error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for len(ds) < limit {
		raw, err := l.receive(ctx, len(ds) == 0)
		if err != nil || raw == nil {
			return ds, err
		}
		l.heard[raw.ID().PartitionIdx()] = time.Now()
		d := &delivery{l: l, raw: raw, own: l.s.message(raw), id: raw.ID(), place: placeOf(raw.ID()), index: indexOf(raw.ID())}
		if l.s.opt.Type == pulsar.Failover {
			d.revoked = make(chan struct{})
		}
		if l.arrivals.read(raw.ID(), func() bool { return l.unsettled.arrived(d) }) {
			l.hasTaken(raw.ID().PartitionIdx())
			ds = append(ds, d)
		}
	}
	return ds, nil
}

// receive is the next message; nil: there is none, or ctx has ended.
func (l *link) receive(ctx context.Context, wait bool) (pulsar.Message, error) {
	if !wait {
		select {
		case m := <-l.messages:
			return m.Message, nil
		default:
			return nil, nil
		}
	}
	m, err := l.consumer.Receive(ctx)
	switch {
	case err == nil:
		return m, nil
	case ctx.Err() != nil:
		return nil, nil //nolint:nilerr // no message came
	}
	return nil, fmt.Errorf("%w: the consumer of topic %q was closed, with its client: %w", driver.ErrClosed, l.s.topic, err)
}

// probeEvery is the pause between two probes. If no answer comes for probeTimeout, Next
// reports that. An error counts if a second question, probeAgain later, has one, too: if a
// connection was lost a moment ago, the client has begun to connect again by then, and the
// second question waits for that.
const (
	probeEvery   = 10 * time.Second
	probeTimeout = 15 * time.Second
	probeAgain   = time.Second
)

// probe is a question to the broker. Messages of other partitions are no answer, because
// the client gives up each partition by itself.
type probe struct {
	began time.Time
	done  chan probed
	late  bool // it was reported that no answer comes
}

// probed is the end of a probe.
type probed struct {
	partitions int
	err        error
	stays      error // why the link stays although there is an err; nil: it does not
}

// errPartitionAdded: the link has no consumer of a partition that was added.
var errPartitionAdded = errors.New("semelpulsar: the topic has more partitions")

// ask asks for the last message of each partition, and for the partitions. It ends when the
// client has connected again, or is closed.
func (l *link) ask(p *probe) {
	ids, err := l.consumer.GetLastMessageIDs()
	if err != nil {
		select {
		case <-time.After(probeAgain):
			ids, err = l.consumer.GetLastMessageIDs()
		case <-l.closed:
		}
	}
	if err == nil {
		partitions, lookupErr := l.s.client.TopicPartitions(l.s.subscribed)
		if lookupErr == nil && len(partitions) > len(ids) { // otherwise the next probe asks again
			err = errPartitionAdded
		}
	}
	end := probed{partitions: len(ids), err: err}
	if err != nil && l.s.opt.Type == pulsar.Exclusive {
		l.trying <- struct{}{}
		end.stays = l.s.tryPartitions(l.isOver)
		<-l.trying
	}
	p.done <- end
}

// health says how the connection is. If the link is broken, the client does not connect
// again by itself, or the link lacks a partition. If the broker does not answer, or the link must
// stay although it is broken, health returns an error; isNew says that it is the first one of its
// probe. If a partition is only idle, health asks the broker to send its messages without an ack
// again.
func (l *link) health(now time.Time) (broken, isNew bool, _ error) {
	if l.probe == nil {
		if now.Sub(l.asked) >= probeEvery {
			l.probe = &probe{began: now, done: make(chan probed, 1)}
			go l.ask(l.probe)
		}
		return false, false, nil
	}
	select {
	case p := <-l.probe.done:
		l.asked, l.probe = now, nil
		if p.err == nil && l.s.opt.Type == pulsar.Failover {
			for i := range int32(p.partitions) { //nolint:gosec // far fewer partitions
				if now.Sub(l.heard[i]) >= probeEvery && l.mayResend(i, now) {
					l.resend(i)
				}
			}
		}
		if p.stays != nil {
			return false, true, fmt.Errorf("semelpulsar: a partition of topic %q cannot be had, and the others are read until it can be: %w", l.s.topic, p.stays)
		}
		return p.err != nil, false, nil
	default:
	}
	waited := now.Sub(l.probe.began)
	if waited <= probeTimeout {
		return false, false, nil
	}
	isNew, l.probe.late = !l.probe.late, true
	return false, isNew, fmt.Errorf("semelpulsar: topic %q: the broker that has the topic, or one of its partitions, has not answered for %v; the client connects again when it is back",
		l.s.topic, waited.Round(time.Second))
}

// stop ends taking: the broker gets back the messages that no Next has returned, at once
// in a shared or a key-shared subscription, and otherwise when the link is closed.
func (l *link) stop() {
	if l.s.inOrder() {
		l.unsettled.stop()
	}
	l.arrivals.stop()
}

// closeIfDone closes a link that was stopped, after its last delivery is settled. It waits
// for the end of that until ctx ends.
func (l *link) closeIfDone(ctx context.Context) {
	if !l.arrivals.isStopped() || l.unsettled.left() > 0 {
		return
	}
	l.close()
	select {
	case <-l.closed:
	case <-ctx.Done():
	}
}

// close begins the end of the link. If a partition is tried, the link ends after the consumer
// that tries it, because the broker would refuse the next member of an exclusive subscription.
func (l *link) close() {
	l.closeOnce.Do(func() {
		l.unsettled.clear()
		go func() {
			defer close(l.closed)
			if l.consumer != nil {
				l.consumer.Close()
			}
			l.copies.close()
			l.trying <- struct{}{} // after it nothing is tried any more, because isOver
			<-l.trying
		}()
	})
}

// abandon closes a link whose deliveries are over.
func (l *link) abandon() {
	l.abandonOnce.Do(func() { close(l.abandoned) })
	l.close()
}

// makeWay waits for the end of an abandoned link of an exclusive subscription, because the
// broker takes no second member. The other types need no wait.
func (l *link) makeWay(ctx context.Context) error {
	if l.s.opt.Type != pulsar.Exclusive {
		return nil
	}
	select {
	case <-l.closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isOver reports whether the link takes no more messages.
func (l *link) isOver() bool { return l.isAbandoned() || l.arrivals.isStopped() }

func (l *link) isAbandoned() bool {
	select {
	case <-l.abandoned:
		return true
	default:
		return false
	}
}

// errAbandoned is the error of deliveries of an earlier Info, or of a lost connection.
var errAbandoned = errors.New("the source has subscribed again")

// explain marks the errors after which the delivery is over.
func (l *link) explain(err error) error {
	if errors.Is(err, errAbandoned) || strings.Contains(err.Error(), "consumer state is closed") {
		return fmt.Errorf("%w: semelpulsar: topic %q: %w", driver.ErrGone, l.s.topic, err)
	}
	return fmt.Errorf("semelpulsar: topic %q: ack: %w", l.s.topic, err)
}
