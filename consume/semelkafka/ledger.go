package semelkafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Ledger is a database that handles many messages in one transaction, for
// [Source.ServeBatches]: their effects and the record that they are done commit
// together. Package kafkapg has ledgers for PostgreSQL. Own may be called
// beside the other methods, which are called one at a time. A Ledger may be a
// [Preparer], too.
type Ledger interface {
	// Own is called for each partition that the group assigns to this member,
	// before it is read. After it, no earlier owner can commit. It returns the
	// offset to read from, whatever was committed to Kafka. start is the
	// committed offset, or the offset of Options.Start if there is none. An
	// error that is driver.ErrClosed ends the source; any other is tried again.
	//
	// last is the message before next, from Item.Last of the last message that was
	// done. If the log has another message there, the source ends with an error. Zero:
	// the ledger does not know it; then Kafka's commit tells, if it is at next, too.
	Own(ctx context.Context, of Place, start int64) (next int64, last LastMessage, err error)
	// Lane says which messages wait for each other: a held message delays later
	// ones with the same lane. Empty: it delays none.
	Lane(it Item) string
	// Handle does the work of messages, in transactions, and says how each
	// ended. They are in the order of their offsets, and none comes before an
	// unfinished one of its lane. A result whose Err is driver.ErrClosed, and
	// not from the handler, ends the source.
	Handle(ctx context.Context, batch []Item) []driver.Result
	// Pass is called for a message that is settled without an effect, after its
	// copy, if there is one, is stored. An error that is driver.ErrClosed ends
	// the source; any other is tried again.
	Pass(ctx context.Context, it Item) error
}

// Place names a partition that a group reads.
type Place struct {
	Group, Topic string
	// TopicID tells the topic from an earlier one with its name. Empty: the
	// brokers have no such thing (before 3.1).
	TopicID   string
	Partition int32
}

// Item is a message of a batch.
type Item struct {
	*consume.Message
	Place Place
	// From is the offset after the previous message, or for the first message
	// the offset from which the partition was read. The offsets between From
	// and the message's own hold no message, because of compaction or
	// transactions.
	From int64
	// LeaderEpoch is that of the leader that appended the message. See LastMessage.
	LeaderEpoch int32
}

// place is the Place of a partition. The caller holds mu.
func (s *Source) place(at place) Place {
	p := Place{Group: s.group, Topic: at.topic, Partition: at.partition}
	if id := s.ids[at.topic]; id != [16]byte{} {
		p.TopicID = topicIDText(id)
	}
	return p
}

// adjust asks the ledger where to read from. The client calls it before it
// fetches partitions, and ends ctx if they are taken away again.
func (s *Source) adjust(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	s.mu.Lock()
	l := s.ledger
	s.mu.Unlock()
	if l == nil {
		return s.beginAll(ctx, offsets)
	}
	for topic, of := range offsets {
		for n, at := range of {
			from, err := s.own(ctx, l, place{topic, n}, at)
			if err != nil {
				return nil, err
			}
			of[n] = from
		}
	}
	return offsets, nil
}

// beginAll finds where to read partitions from without a ledger.
func (s *Source) beginAll(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	for topic, of := range offsets {
		for n, start := range of {
			at := place{topic, n}
			err := s.repeat(ctx, at, func() (err error) {
				of[n], err = s.begin(ctx, at, start)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return offsets, nil
}

// The first and the longest pause before a ledger is asked again.
const (
	firstOwn   = 50 * time.Millisecond
	longestOwn = 2 * time.Second
)

// own takes a partition over, and repeats that until the ledger answers.
func (s *Source) own(ctx context.Context, l Ledger, at place, committed kgo.Offset) (kgo.Offset, error) {
	for pause := firstOwn; ; pause = min(2*pause, longestOwn) {
		from, err := s.ownOnce(ctx, l, at, committed)
		switch {
		case err == nil:
			return from, nil
		case errors.Is(err, driver.ErrClosed):
			s.fail(err)
			return kgo.Offset{}, err
		}
		s.warn(fmt.Errorf("semelkafka: topic %q, partition %d cannot be owned: %w", at.topic, at.partition, err))
		select {
		case <-ctx.Done():
			return kgo.Offset{}, ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (s *Source) ownOnce(ctx context.Context, l Ledger, at place, from kgo.Offset) (kgo.Offset, error) {
	s.mu.Lock()
	cl, of := s.client, s.place(at)
	s.mu.Unlock()
	committed := from.EpochOffset().Offset
	start := committed
	if start < 0 {
		var err error
		if start, err = listOffset(ctx, cl, at, start); err != nil {
			return from, err
		}
	}
	next, last, err := l.Own(ctx, of, start)
	if err != nil {
		return from, err
	}
	check := lastCheck{offset: next - 1, last: last, start: next}
	if next == committed && !last.isKnown() {
		check = s.committedCheck(at, committed)
	}
	s.mu.Lock()
	if p := s.parts[at]; p != nil {
		p.from, p.ledgerPlace, p.batched = next, of, true
		if next < committed && p.mark.after <= next { // only markers of transactions lie between
			check.start = committed
		} else {
			p.mark.next, p.mark.after, p.mark.last = mark{next, -1}, check.offset+1, check.last
			if p.dirty = next != committed; p.dirty {
				s.nudge()
			}
		}
	}
	s.mu.Unlock()
	if check.start != committed { // otherwise keep the epoch, which shows whether the log was cut
		from = kgo.NewOffset().At(check.start)
	}
	return s.verified(ctx, at, from, check)
}

// The positions that listOffset can be asked for.
const (
	firstOffset = -2
	endOffset   = -1
)

// listOffset asks for the first offset of a partition or for its end.
func listOffset(ctx context.Context, cl *kgo.Client, at place, which int64) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, 1
	topic, partition := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	partition.Partition, partition.Timestamp = at.partition, which
	topic.Topic, topic.Partitions = at.topic, []kmsg.ListOffsetsRequestTopicPartition{partition}
	req.Topics = []kmsg.ListOffsetsRequestTopic{topic}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return 0, err
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[j]
			return p.Offset, kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return 0, errors.New("the brokers do not say where its log begins")
}

// misplaced returns an error if records from offset on cannot follow the
// ledger's. The caller holds mu.
func (s *Source) misplaced(p *partition, topicID string, offset int64) error {
	of := s.place(p.place)
	switch known := max(p.from, p.polled); {
	case s.ledger == nil:
		return nil
	case of.TopicID != "" && topicID != of.TopicID:
		return fmt.Errorf("topic %q: was deleted and created again: its id was %s, and is %s; its messages are different ones", of.Topic, of.TopicID, topicID)
	case offset < known:
		return fmt.Errorf("topic %q, partition %d: the log was cut: offset %d is done or in work, and comes again; its message may be another", of.Topic, of.Partition, offset)
	}
	return nil
}
