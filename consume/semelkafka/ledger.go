package semelkafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Ledger is a database that handles many messages in one transaction, for
// [Source.ServeBatches]: their effects and the record that they are done commit
// together. Package kafkapg has ledgers for PostgreSQL. Own is called for one
// partition at a time, perhaps beside the other methods, which are called one at a time. A Ledger may be a
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
	Own(ctx context.Context, of GroupPartition, start int64) (next int64, last LastMessage, err error)
	// OrderKey says which messages wait for each other: a held message delays later
	// ones with the same order key. Empty: it delays none.
	OrderKey(it Item) string
	// Handle does the work of messages, in transactions, and says how each
	// ended. They are in the order of their offsets, and none comes before an
	// unfinished one of its order key. A result whose Err is driver.ErrClosed, and
	// not from the handler, ends the source.
	Handle(ctx context.Context, batch []Item) []driver.Result
	// Pass is called for a message that is settled without an effect, after its
	// copy, if there is one, is stored. An error that is driver.ErrClosed ends
	// the source; any other is tried again.
	Pass(ctx context.Context, it Item) error
}

// GroupPartition names a partition that a group reads.
type GroupPartition struct {
	Group, Topic string
	// TopicID tells the topic from an earlier one with its name. Empty: the
	// brokers have no such thing (before 3.1).
	TopicID   string
	Partition int32
}

// Item is a message of a batch.
type Item struct {
	*consume.Message
	Partition GroupPartition
	// From is the offset after the previous message, or for the first message
	// the offset from which the partition was read. The offsets between From
	// and the message's own hold no message, because of compaction or
	// transactions.
	From int64
	// LeaderEpoch is the epoch of the leader that appended the message. See LastMessage.
	LeaderEpoch int32
}

// groupPartition is the GroupPartition of a partition. The caller holds mu.
func (s *Source) groupPartition(at partitionID) GroupPartition {
	p := GroupPartition{Group: s.group, Topic: at.topic, Partition: at.partition}
	if id := s.ids[at.topic]; id != [16]byte{} {
		p.TopicID = topicIDText(id)
	}
	return p
}

// beginning is the search for the position from which a partition is read.
type beginning struct {
	done chan struct{} // closed when from and err are set
	from kgo.Offset
	err  error
	late bool // adjust has not waited for it; Source.mu guards it
}

// startWait is how long the positions of new partitions may take to be found before the
// client reads those that are known.
const startWait = 3 * time.Second

// adjust finds where to read partitions from. The client calls it before it fetches them,
// reads none of them before it returns, and ends ctx if they are taken away again. A
// partition without a leader gives no answer. After startWait such a partition stays
// paused, and begins when its position is known.
func (s *Source) adjust(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	wait := time.NewTimer(startWait)
	defer wait.Stop()
	for at, b := range s.beginAll(offsets) {
		select {
		case <-b.done:
		case <-wait.C:
			wait.Reset(0) // the time is over for the others, too
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		from, err := s.begun(at, b, offsets[at.topic][at.partition])
		if err != nil {
			return nil, err
		}
		offsets[at.topic][at.partition] = from
	}
	return offsets, nil
}

// beginAll begins the search for partitions, each in a goroutine of its own.
func (s *Source) beginAll(offsets map[string]map[int32]kgo.Offset) map[partitionID]*beginning {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[partitionID]*beginning{}
	for topic, of := range offsets {
		for n, committed := range of {
			p := s.parts[partitionID{topic, n}]
			if p == nil {
				continue // it was taken away: the client's records of it are dropped
			}
			if p.beginning == nil { // otherwise the client has asked before
				p.beginning = &beginning{done: make(chan struct{})}
				go s.search(p, p.beginning, s.ledger, committed)
			}
			all[p.partitionID] = p.beginning
		}
	}
	return all
}

// begun returns where the client begins to read a partition. If that is not known, it
// pauses the partition.
func (s *Source) begun(at partitionID, b *beginning, committed kgo.Offset) (kgo.Offset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-b.done:
		if p := s.parts[at]; p != nil && p.beginning == b {
			p.beginning = nil
		}
		return b.from, b.err
	default:
	}
	b.late = true
	s.trouble = fmt.Errorf("semelkafka: topic %q, partition %d: no answer yet about where to begin, perhaps because it has no leader; "+
		"the partition is read when the answer has come, and the others are read now", at.topic, at.partition)
	s.client.PauseFetchPartitions(map[string][]int32{at.topic: {at.partition}})
	return kgo.NewOffset().At(max(0, committed.EpochOffset().Offset)), nil // of a number the client asks no broker
}

// search finds where to read a partition from, until it is taken away.
func (s *Source) search(p *partition, b *beginning, l Ledger, committed kgo.Offset) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-p.revoked:
			cancel()
		case <-ctx.Done():
		}
	}()
	var from kgo.Offset
	var err error
	if l != nil {
		from, err = s.own(ctx, l, p.partitionID, committed)
	} else {
		err = s.repeat(ctx, p.partitionID, func() (err error) {
			from, err = s.begin(ctx, p.partitionID, committed)
			return err
		})
	}
	s.mu.Lock()
	b.from, b.err = from, err
	close(b.done)
	late := b.late
	s.mu.Unlock()
	if late && err == nil {
		s.beginLate(ctx, p, from)
	}
}

// beginLate has the client read a paused partition from a position. A position that is set
// while adjust runs counts more than the one that adjust returns.
func (s *Source) beginLate(ctx context.Context, p *partition, from kgo.Offset) {
	s.mu.Lock()
	cl := s.client
	s.mu.Unlock()
	position := from.EpochOffset() // SetOffsets does not validate it
	if err := s.repeat(ctx, p.partitionID, func() (err error) {
		position, err = s.validated(ctx, cl, p.partitionID, position)
		return err
	}); err != nil || ctx.Err() != nil {
		return
	}
	cl.SetOffsets(map[string]map[int32]kgo.EpochOffset{p.topic: {p.partition: position}})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts[p.partitionID] == p {
		p.beginning = nil
		cl.ResumeFetchPartitions(map[string][]int32{p.topic: {p.partition}})
	}
}

// The first and the longest pause before a ledger is asked again.
const (
	firstOwn   = 50 * time.Millisecond
	longestOwn = 2 * time.Second
)

// own takes a partition over, and repeats that until the ledger answers.
func (s *Source) own(ctx context.Context, l Ledger, at partitionID, committed kgo.Offset) (kgo.Offset, error) {
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

func (s *Source) ownOnce(ctx context.Context, l Ledger, at partitionID, from kgo.Offset) (kgo.Offset, error) {
	s.mu.Lock()
	cl, of := s.client, s.groupPartition(at)
	s.mu.Unlock()
	committed := from.EpochOffset().Offset
	start := committed
	if start < 0 {
		which, err := s.firstBegin(ctx, at)
		if err == nil {
			start, err = listOffset(ctx, cl, at, which)
		}
		if err != nil {
			return from, err
		}
	}
	s.owning.Lock() // one Own at a time
	next, last, err := l.Own(ctx, of, start)
	s.owning.Unlock()
	if err != nil {
		return from, err
	}
	check := lastCheck{offset: next - 1, last: last, start: next}
	if next == committed && !last.isKnown() {
		check = s.committedCheck(at, committed)
	}
	s.mu.Lock()
	if p := s.parts[at]; p != nil {
		p.from, p.ledgerID, p.batched = next, of, true
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

// misplaced returns an error if records from offset on cannot follow the
// ledger's. The caller holds mu.
func (s *Source) misplaced(p *partition, topicID string, offset int64) error {
	of := s.groupPartition(p.partitionID)
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
