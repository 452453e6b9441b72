package semelkafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/semel-go/semel/consume/driver"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func (p partitionID) compare(q partitionID) int {
	return cmp.Or(strings.Compare(p.topic, q.topic), cmp.Compare(p.partition, q.partition))
}

// wants reports whether to poll: fewer records are queued than may be returned,
// or a partition has none. Otherwise the records stay with the client, which
// fetches no more until they are taken.
func (s *Source) wants(limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, p := range s.parts {
		if len(p.queue) == 0 {
			return true
		}
		n += len(p.queue)
	}
	return n < limit
}

// await waits until a delivery or ctx has ended, or, if it polls, until records
// arrive.
func (s *Source) await(ctx context.Context, cl *kgo.Client, n int, poll bool) {
	if !poll {
		select {
		case <-s.changed:
		case <-ctx.Done():
		}
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.halted > 0 {
		s.mu.Unlock()
		s.polling.Lock() // withoutPolls holds it for a short time
		defer s.polling.Unlock()
		return
	}
	s.interrupt = cancel
	s.mu.Unlock()
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-s.changed:
			cancel()
		case <-ctx.Done():
		}
	})
	s.poll(ctx, cl, n)
	cancel()
	watch.Wait()
}

// poll moves the client's records into the queues. Nil ctx: it does not wait.
func (s *Source) poll(ctx context.Context, cl *kgo.Client, n int) {
	s.polling.Lock()
	defer s.polling.Unlock()
	fetches := cl.PollRecords(ctx, n)
	fetches.EachError(func(topic string, partition int32, err error) {
		s.failed(partitionID{topic, partition}, err)
	})
	for i := range fetches {
		for j := range fetches[i].Topics {
			t := &fetches[i].Topics[j]
			for k := range t.Partitions {
				s.enqueue(t, &t.Partitions[k])
			}
		}
	}
}

// enqueue puts the records of a partition into its queue. It drops records of
// partitions that this member does not have.
func (s *Source) enqueue(t *kgo.FetchTopic, f *kgo.FetchPartition) {
	at := partitionID{t.Topic, f.Partition}
	items := make([]item, len(f.Records))
	id := s.topicID(t)
	for i, r := range f.Records {
		if items[i].r = r; !r.Attrs.IsControl() {
			items[i].m = s.message(r, id)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parts[at]
	if p == nil {
		return
	}
	p.end = f.HighWatermark
	items, err := p.compareLast(items)
	if err != nil {
		s.breakOff(err)
		return
	}
	if len(items) > 0 {
		if err := s.misplaced(p, id, items[0].r.Offset); err != nil {
			s.breakOff(err)
			return
		}
	}
	for _, it := range items {
		if it.r.Offset < p.polled {
			p = s.rewound(p)
		}
		if it.m != nil {
			p.put(it)
		} else if p.pass(it.r) {
			s.nudge()
		}
	}
}

// rewound begins a partition again whose log was cut or reset: deliveries from
// before do not count, because their offsets may belong to other messages now.
// The caller holds mu.
func (s *Source) rewound(old *partition) *partition {
	old.leave()
	old.gone = true
	p := newPartition(old.partitionID)
	p.end, p.paused, p.skipping = old.end, old.paused, old.skipping
	p.ledgerID, p.batched = old.ledgerID, old.batched
	p.from = old.from // for the ledger no message is between this offset and the next record
	s.parts[old.partitionID] = p
	return p
}

// pace pauses the partitions whose queues are full while another's is empty and
// may have records after theirs, and resumes those whose queues have room.
//
// The client discards fetched records of a paused partition. So all of them
// except one are taken first: taking the last one sends the next fetch, and
// that must not ask for partitions that are paused by then.
func (s *Source) pace(cl *kgo.Client) {
	if s.crowded() {
		if n := int(cl.BufferedFetchRecords()); n > 1 {
			s.poll(nil, cl, n-1) //nolint:staticcheck // as in Next
		}
	}
	crowded := s.crowded()
	pause, resume := map[string][]int32{}, map[string][]int32{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, p := range s.parts {
		switch {
		case crowded && !p.paused && p.full():
			p.paused = true
			pause[at.topic] = append(pause[at.topic], at.partition)
		case p.paused && p.low():
			p.paused = false
			resume[at.topic] = append(resume[at.topic], at.partition)
		}
	}
	if len(pause) > 0 {
		cl.PauseFetchPartitions(pause)
	}
	if len(resume) > 0 {
		cl.ResumeFetchPartitions(resume)
	}
}

// crowded reports whether a partition that is not paused is full while another
// is empty.
func (s *Source) crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	full, empty := false, false
	for _, p := range s.parts {
		full = full || !p.paused && p.full()
		empty = empty || len(p.queue) == 0
	}
	return full && empty
}

// failed handles an error that the client reports.
func (s *Source) failed(at partitionID, err error) {
	loss, lost := errors.AsType[*kgo.ErrDataLoss](err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return
	case lost:
		s.lostBehind(at, loss)
	case errors.Is(err, kgo.ErrClientClosed):
		s.fail(err)
	case s.lostUnread(err):
		go s.skipLost(at)
	case errors.Is(err, kerr.OffsetOutOfRange):
		s.fail(fmt.Errorf("topic %q, partition %d: the group's offset is not in the log any more: the following messages were deleted before they were read, "+
			"or the log was cut; find out which were lost, and set the group's offset or Options.OutOfRange: %w", at.topic, at.partition, err))
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID):
		s.fail(fmt.Errorf("topic %q: was deleted, and may have been created again with different messages; restart the consumer if that was intended: %w", at.topic, err))
	case at.topic == "":
		s.warn(fmt.Errorf("semelkafka: group %q: %w", s.group, err))
	default:
		s.warn(fmt.Errorf("semelkafka: topic %q, partition %d: %w", at.topic, at.partition, err))
	}
}

// warn makes the next Next return an error.
func (s *Source) warn(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = err
}

// fail ends the source.
func (s *Source) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breakOff(err)
}

// breakOff ends the source. The caller holds mu.
func (s *Source) breakOff(err error) {
	if s.broken == nil {
		s.broken = fmt.Errorf("%w: semelkafka: %w", driver.ErrClosed, err)
		s.wake()
	}
}
