package semelkafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// begin returns where to read a partition from. A position that depends on the
// time at which it is asked for, the end of the log, is committed before it is
// used, so that the next owner begins there, too, and not at a later end. With
// OutOfRange Latest the position is always a number, because afterLost compares it with
// the log.
func (s *Source) begin(ctx context.Context, at partitionID, start kgo.Offset) (kgo.Offset, error) {
	if offset := start.EpochOffset().Offset; offset >= 0 {
		return s.verified(ctx, at, start, s.committedCheck(at, offset))
	}
	switch which, err := s.firstBegin(ctx, at); {
	case err != nil:
		return start, err
	case which == endOffset:
		end, err := s.toEnd(ctx, at)
		return kgo.NewOffset().At(end), err
	case s.opt.Start == Latest || s.opt.OutOfRange == Latest:
		first, err := s.toFirst(ctx, at)
		return kgo.NewOffset().At(first), err
	default:
		return start, nil
	}
}

// toFirst moves a partition's position to the first record of the log.
func (s *Source) toFirst(ctx context.Context, at partitionID) (int64, error) {
	s.mu.Lock()
	cl, p := s.client, s.parts[at]
	s.mu.Unlock()
	if p == nil {
		return 0, errors.New("the partition was taken away")
	}
	first, err := listOffset(ctx, cl, at, firstOffset)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.mark.next, p.mark.after, p.mark.last = mark{first, -1}, first, LastMessage{}
	return first, nil
}

// toEnd moves a partition's position to the end of the log, and commits it.
func (s *Source) toEnd(ctx context.Context, at partitionID) (int64, error) {
	s.mu.Lock()
	cl, p := s.client, s.parts[at]
	s.mu.Unlock()
	if p == nil {
		return 0, errors.New("the partition was taken away")
	}
	end, err := listOffset(ctx, cl, at, endOffset)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	p.mark.next, p.mark.after, p.mark.last, p.dirty = mark{end, -1}, end, LastMessage{}, true
	s.mu.Unlock()
	s.commit(ctx, []*partition{p})
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.dirty && !p.gone {
		return 0, errors.New("its position is not committed")
	}
	return end, nil
}

// skipLost continues at the end of the log if the records at the position were
// deleted before they were read. Other errors of the client do not count meanwhile;
// another try follows a later one.
func (s *Source) skipLost(at partitionID) {
	s.mu.Lock()
	cl, old := s.client, s.parts[at]
	if cl == nil || old == nil || old.skipping {
		s.mu.Unlock()
		return
	}
	old.skipping = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if p := s.parts[at]; p != nil {
			p.skipping = false
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	position, err := s.afterLost(ctx, cl, at, old)
	if err != nil {
		s.warn(fmt.Errorf("semelkafka: topic %q, partition %d: %w", at.topic, at.partition, err))
		return
	}
	cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{at.topic: {at.partition: {Epoch: -1, Offset: position}}})
}

// afterLost returns where a partition goes on after the client's error that its
// position is not in the log. If the position is in the log, the error is about an
// earlier one: the end of the log has moved since, and a move there would lose messages.
func (s *Source) afterLost(ctx context.Context, cl *kgo.Client, at partitionID, old *partition) (int64, error) {
	s.mu.Lock()
	position := old.mark.next.offset
	s.mu.Unlock()
	first, err := listOffset(ctx, cl, at, firstOffset)
	if err != nil {
		return 0, err
	}
	end, err := listOffset(ctx, cl, at, endOffset)
	if err != nil {
		return 0, err
	}
	if first <= position && position <= end {
		return position, nil
	}
	s.withoutPolls(func() {
		if s.parts[at] == old {
			s.rewound(old)
		}
	})
	return s.toEnd(ctx, at)
}

// The positions that listOffset can be asked for.
const (
	firstOffset = -2
	endOffset   = -1
)

// listOffset asks for the first offset of a partition or for its end.
func listOffset(ctx context.Context, cl *kgo.Client, at partitionID, which int64) (int64, error) {
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

// repeat calls f until it succeeds or ctx ends.
func (s *Source) repeat(ctx context.Context, at partitionID, f func() error) error {
	for pause := firstOwn; ; pause = min(2*pause, longestOwn) {
		err := f()
		if err == nil {
			return nil
		}
		s.warn(fmt.Errorf("semelkafka: topic %q, partition %d: its start is not known: %w", at.topic, at.partition, err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// lostUnread reports whether the client's error says that the position is not in
// the log any more, and the options say to go on at its end.
func (s *Source) lostUnread(err error) bool {
	return s.opt.OutOfRange == Latest && errors.Is(err, kerr.OffsetOutOfRange)
}

// lastCheck is the message before the position from which a partition is read.
// The partition is read from that message on, to see whether it is still there.
type lastCheck struct {
	offset int64 // of the message
	last   LastMessage
	start  int64 // the position: the offset after the message, and after markers of transactions
}

// verified returns where to read a partition from so that the message before the
// position is read again. If that message is not known, or was deleted, it returns start.
func (s *Source) verified(ctx context.Context, at partitionID, start kgo.Offset, check lastCheck) (kgo.Offset, error) {
	if !check.last.isKnown() || check.offset < 0 {
		return start, nil
	}
	s.mu.Lock()
	cl := s.client
	s.mu.Unlock()
	first, err := listOffset(ctx, cl, at, firstOffset)
	if err != nil || first > check.offset {
		return start, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.parts[at]; p != nil {
		p.check = &check
	}
	return kgo.NewOffset().At(check.offset).WithEpoch(check.last.LeaderEpoch), nil // with the epoch, the client asks where the logs part
}

// committedCheck is the check of a committed offset.
func (s *Source) committedCheck(at partitionID, committed int64) lastCheck {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := lastCheck{offset: committed - 1, start: committed}
	if p := s.parts[at]; p != nil && p.mark.next.offset == committed {
		c.offset, c.last = p.mark.after-1, p.mark.last
	}
	return c
}

// compareLast checks that the message before the position is the expected one, and
// returns the records after it. If the message was compacted away, it cannot tell.
// The caller holds mu.
func (p *partition) compareLast(items []item) ([]item, error) {
	for p.check != nil && len(items) > 0 {
		c, r := p.check, items[0].r
		switch {
		case r.Offset >= c.start, r.Offset < c.offset: // below: the client has begun again at the first offset
			p.check = nil
			return items, nil
		case items[0].m == nil: // the marker of a transaction
		case r.Offset > c.offset:
			return nil, fmt.Errorf("%w; there was no message at offset %d before, and there is one now", p.otherLog(c.start, c.last.LeaderEpoch), r.Offset)
		case r.LeaderEpoch != c.last.LeaderEpoch || r.Timestamp.UnixMilli() != c.last.Published.UnixMilli():
			return nil, fmt.Errorf("%w; the message at offset %d has leader epoch %d and the timestamp %s now, and had leader epoch %d and the timestamp %s",
				p.otherLog(c.start, c.last.LeaderEpoch), r.Offset, r.LeaderEpoch, timestamp(r.Timestamp), c.last.LeaderEpoch, timestamp(c.last.Published))
		}
		items = items[1:]
	}
	return items, nil
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// otherLog is the error of a position that belongs to another log.
func (p partitionID) otherLog(offset int64, epoch int32) error {
	return fmt.Errorf("topic %q, partition %d: the messages below offset %d, read up to leader epoch %d, are done, but the log has others there now, "+
		"because of an unclean leader election or a broker that was restored from an older copy; find out which messages are new, and set the group's offset "+
		"to the first of them (kafka-consumer-groups.sh --reset-offsets) and the ledger's position, if there is one (pgkafka.Forget)", p.topic, p.partition, offset, epoch)
}

// lostBehind handles the client's error that messages before its position are
// not in the log any more. The client goes on where the logs part.
func (s *Source) lostBehind(at partitionID, loss *kgo.ErrDataLoss) {
	err := fmt.Errorf("%w; the log goes on with leader epoch %d at offset %d", at.otherLog(loss.ConsumedTo, loss.ConsumedToEpoch), loss.ResetToEpoch, loss.ResetTo)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledger == nil && s.opt.OutOfRange != Refuse {
		s.trouble = fmt.Errorf("semelkafka: %w", err)
		return
	}
	s.breakOff(err)
}

// validated asks the broker whether the log of the position's leader epoch reaches the
// position, as the client does for the positions that adjust returns. If it does not,
// validated reports that, and returns where the logs part.
func (s *Source) validated(ctx context.Context, cl *kgo.Client, at partitionID, from kgo.EpochOffset) (kgo.EpochOffset, error) {
	if from.Epoch < 0 {
		return from, nil
	}
	topic, partition := kmsg.NewOffsetForLeaderEpochRequestTopic(), kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	partition.Partition, partition.LeaderEpoch = at.partition, from.Epoch
	topic.Topic, topic.Partitions = at.topic, append(topic.Partitions, partition)
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID, req.Topics = -1, append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return from, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return from, errors.New("the brokers do not say where the log of its leader epoch ends")
	}
	p := &resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil || p.EndOffset < 0 || p.EndOffset >= from.Offset {
		return from, err // below zero: the broker does not know the epoch
	}
	s.lostBehind(at, &kgo.ErrDataLoss{ConsumedTo: from.Offset, ConsumedToEpoch: from.Epoch, ResetTo: p.EndOffset, ResetToEpoch: p.LeaderEpoch})
	return kgo.EpochOffset{Epoch: p.LeaderEpoch, Offset: p.EndOffset}, nil
}
