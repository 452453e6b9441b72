package outbox

import (
	"slices"
	"time"
)

// outage counts the calls of Publish in a row that have sent no message of a topic. During
// an outage the publisher sends few messages of the topic at a time, so that few of them
// count a failed attempt, and goes on with the other topics.
type outage struct {
	failures int
	until    time.Time // end of the pause
	probing  *sending  // the call that sends some messages of the topic; nil: none
}

const (
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
	forgetPause  = time.Minute // after its pause; then the topic counts as whole
	probe        = 16          // messages of a topic at a time
)

// outages are the outages by topic.
type outages map[string]*outage

// isPaused reports whether messages of a topic are left out.
func (o outages) isPaused(topic string, now time.Time) bool {
	out := o[topic]
	return out != nil && (out.probing != nil || now.Before(out.until))
}

// paused returns the topics that are left out, and when the first pause ends, unless that
// is later than latest.
func (o outages) paused(now, latest time.Time) (topics []string, next time.Time) {
	next = latest
	for topic, out := range o {
		switch {
		case out.probing != nil:
		case now.Sub(out.until) > forgetPause:
			delete(o, topic)
			continue
		case !now.Before(out.until):
			continue
		case out.until.Before(next):
			next = out.until
		}
		topics = append(topics, topic)
	}
	return topics, next
}

// admit returns the messages that are sent now. Of a topic with an outage it keeps up to probe of
// them. If there are others, messages of Orders that have failed before have at most half of a
// probe: their receivers may be down for long, and only a message that is sent ends the outage.
func (o outages) admit(taken []Taken, now time.Time) []Taken {
	if len(o) == 0 {
		return taken
	}
	failing := map[int64]bool{} // by Order, so that no message is sent before an earlier one of its Order
	fresh := map[string]int{}
	for i := range taken {
		t := &taken[i]
		if _, known := failing[t.Order]; !known {
			failing[t.Order] = t.Attempts > 0
		}
		if !failing[t.Order] {
			fresh[t.Topic]++
		}
	}
	all, again := map[string]int{}, map[string]int{}
	return slices.DeleteFunc(taken, func(t Taken) bool {
		if o[t.Topic] == nil {
			return false
		}
		if o.isPaused(t.Topic, now) || all[t.Topic] == probe || failing[t.Order] && again[t.Topic] == max(probe/2, probe-fresh[t.Topic]) {
			return true
		}
		all[t.Topic]++
		if failing[t.Order] {
			again[t.Topic]++
		}
		return false
	})
}

// tally counts the messages of a topic in one call of Publish.
type tally struct {
	taken, answered, sent, failed int
	places                        int // of the messages without an answer
}

// observe notes that all messages of a topic in a call of Publish have their answers. A
// message that was sent has ended the outage before. During an outage only the call that
// probes the topic counts, because an older one says nothing about the time after its start.
func (o outages) observe(topic string, b *sending, now time.Time) {
	out, n := o[topic], b.topics[topic]
	switch {
	case out == nil && n.sent == 0 && n.failed > 0:
		out = &outage{}
		o[topic] = out
	case out == nil || out.probing != b:
		return
	}
	out.probing = nil
	if n.failed > 0 {
		out.until = now.Add(min(firstPause<<min(out.failures, 10), longestPause))
		out.failures++
	}
}
