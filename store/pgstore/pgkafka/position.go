package pgkafka

import (
	"fmt"
	"time"
)

// TopicPartition is one partition of a topic, as one consumer reads it.
type TopicPartition struct {
	Consumer string // the consumer group
	Topic    string
	// TopicID tells the topic from an earlier one with its name. It is empty if the
	// broker has no such id. Then a topic that was deleted and made again is not
	// noticed, and as many of its messages are skipped as were done of the old one.
	TopicID   string
	Partition int32
}

// check refuses a partition, or an offset, that cannot be.
func (tp *TopicPartition) check(what string, offset int64) error {
	if tp.Consumer == "" || tp.Topic == "" || tp.Partition < 0 || offset < 0 {
		return fmt.Errorf("pgkafka: %s: Consumer and Topic must not be empty, and Partition (%d) and the offset (%d) not be negative", what, tp.Partition, offset)
	}
	return nil
}

// LastMessage is the message before a watermark, as far as it tells the log of the
// partition from another log: after an unclean leader election, or in a broker that
// was restored from an older copy, there may be another message at its offset.
type LastMessage struct {
	LeaderEpoch int32     // of the leader that appended it
	Published   time.Time // its timestamp, of which milliseconds are kept; zero: nothing is known of the message
}

// Span is the messages with the offsets from First to before Next.
type Span struct {
	First, Next int64
	Last        LastMessage // of the span; zero: unknown
}
