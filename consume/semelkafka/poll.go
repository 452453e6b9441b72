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

func (p place) compare(q place) int {
	return cmp.Or(strings.Compare(p.topic, q.topic), cmp.Compare(p.partition, q.partition))
}

// wants reports whether records are to be polled: there are fewer than may be
// handed out, or a partition has none. Otherwise they stay with the client,
// which fetches no more until they are taken.
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

// await waits until a delivery has ended or ctx has, or, if it polls, until
// something comes.
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
		s.polling.Lock() // whoever halts has it, for as long as a note takes
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

// poll puts what the client has into the queues. Nil ctx: without waiting.
func (s *Source) poll(ctx context.Context, cl *kgo.Client, n int) {
	s.polling.Lock()
	defer s.polling.Unlock()
	fetches := cl.PollRecords(ctx, n)
	fetches.EachError(func(topic string, partition int32, err error) {
		s.failed(place{topic, partition}, err)
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

// enqueue puts the records of a partition into its queue. Records of a
// partition that is not this member's, or not any more, are another's to read.
func (s *Source) enqueue(t *kgo.FetchTopic, f *kgo.FetchPartition) {
	at := place{t.Topic, f.Partition}
	items := make([]item, len(f.Records))
	id := s.topicID(t)
	for i, r := range f.Records {
		items[i] = item{r: r, m: s.message(r, id)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parts[at]
	if p == nil {
		return
	}
	p.end = f.HighWatermark
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
		p.put(it)
	}
}

// rewound takes a partition as given anew whose log was cut, or was reset: what
// was handed out of it does not count, for its offsets may be others' now. The
// caller holds mu.
func (s *Source) rewound(old *partition) *partition {
	old.leave()
	old.gone = true
	p := newPartition(old.place)
	p.end, p.paused = old.end, old.paused
	s.parts[old.place] = p
	return p
}

// pace has the client stop to fetch partitions whose queues are full, where
// another's is empty and may have records behind theirs, and go on with those
// whose queues are not full any more.
//
// The client throws away what it has fetched of a partition that is paused. So
// what it has is taken first, but for one record: when the last is taken it
// sends the next fetch, and that is not to ask for what is paused by then.
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

// crowded reports whether a partition that is fetched is full while another is
// empty.
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

// failed notes what the client says went wrong.
func (s *Source) failed(at place, err error) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return
	case errors.Is(err, kgo.ErrClientClosed):
		s.fail(err)
	case errors.Is(err, kerr.OffsetOutOfRange):
		s.fail(fmt.Errorf("topic %q, partition %d: the group's offset is not in the log any more; what followed it was deleted before it was read, "+
			"or the log was cut: see what was lost, and set the group's offset or Options.OutOfRange: %w", at.topic, at.partition, err))
	case errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InconsistentTopicID):
		s.fail(fmt.Errorf("topic %q: was deleted, and may have been made anew under its name; its messages are others: start again, if that is meant: %w", at.topic, err))
	case at.topic == "":
		s.warn(fmt.Errorf("semelkafka: group %q: %w", s.group, err))
	default:
		s.warn(fmt.Errorf("semelkafka: topic %q, partition %d: %w", at.topic, at.partition, err))
	}
}

// warn has the next Next return an error.
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
