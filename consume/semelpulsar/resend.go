package semelpulsar

import (
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// longestResend is the longest pause between two resends of a partition that has messages here.
const longestResend = 5 * time.Minute

// resent is the last resend of a partition.
type resent struct {
	at    time.Time
	pause time.Duration // after it
	taken int           // messages that Next has returned since, without their copies
}

// hasTaken notes that Next returns a message of a partition.
func (l *link) hasTaken(partition int32) {
	last := l.sent[partition]
	last.taken++
	l.sent[partition] = last
}

// mayResend reports whether a resend of a partition may be sent now, and notes it. While messages
// of the partition are here, the pauses double, because the broker sends all of them again each
// time. They begin again if as many messages have come since the last resend as are here: the
// resend then costs no more than they did.
func (l *link) mayResend(partition int32, now time.Time) bool {
	last := l.sent[partition]
	if last.taken >= l.unsettled.here(partition) {
		last.pause = 0
	}
	if now.Sub(last.at) < last.pause {
		return false
	}
	l.sent[partition] = resent{at: now, pause: min(max(2*last.pause, 2*probeEvery), longestResend)}
	return true
}

// resend asks the broker to send the unacknowledged messages of a partition again, in a
// failover subscription.
// The broker looks at no message ID then: it rewinds its cursor, or ignores a member that
// is not active.
func (l *link) resend(partition int32) {
	l.consumer.NackID(pulsar.NewMessageID(0, 0, -1, partition))
}
