package semelkafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// withoutPolls runs f with mu held and no poll under way: records fetched
// before f are in the queues, and later ones were fetched after it.
func (s *Source) withoutPolls(f func()) {
	s.mu.Lock()
	s.halted++
	if s.interrupt != nil {
		s.interrupt()
	}
	s.mu.Unlock()
	s.polling.Lock()
	defer s.polling.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halted--
	f()
}

// assigned adds partitions. The client calls it before it fetches them.
func (s *Source) assigned(_ context.Context, cl *kgo.Client, came map[string][]int32) {
	if len(came) == 0 {
		return
	}
	s.withoutPolls(func() {
		s.rebalances++
		for at := range partitionIDs(came) {
			s.parts[at] = newPartition(at)
		}
		cl.ResumeFetchPartitions(came) // the client remembers pauses of an earlier time
		s.wake()
	})
}

// revoked hands partitions over: it waits for the running handlers, commits,
// and gives the partitions up.
func (s *Source) revoked(ctx context.Context, _ *kgo.Client, went map[string][]int32) {
	if len(went) == 0 {
		return
	}
	var left []*partition
	s.withoutPolls(func() {
		s.rebalances++
		for at := range partitionIDs(went) {
			if p := s.parts[at]; p != nil {
				p.leave()
				left = append(left, p)
			}
		}
	})
	wait, cancel := context.WithTimeout(ctx, s.opt.HandOver)
	defer cancel()
	s.awaitEnd(wait, left)
	s.awaitBeginnings(wait, left)
	s.commit(ctx, left)
	s.forget(left)
}

// lost gives up partitions that another member already has.
func (s *Source) lost(_ context.Context, _ *kgo.Client, went map[string][]int32) {
	var left []*partition
	s.withoutPolls(func() {
		for at := range partitionIDs(went) {
			if p := s.parts[at]; p != nil {
				left = append(left, p)
			}
		}
	})
	s.forget(left)
}

// awaitEnd waits until the deliveries of partitions have ended, or ctx has.
func (s *Source) awaitEnd(ctx context.Context, left []*partition) {
	for {
		s.mu.Lock()
		n, ended := 0, s.ended
		for _, p := range left {
			n += p.unfinished
		}
		s.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return
		}
	}
}

// awaitBeginnings waits until no search for the position of a partition calls the ledger any
// more, or ctx has ended: a later Own would take the partition from its next owner.
func (s *Source) awaitBeginnings(ctx context.Context, left []*partition) {
	for _, p := range left {
		s.mu.Lock()
		b := p.beginning
		s.mu.Unlock()
		if b == nil {
			continue
		}
		select {
		case <-b.done:
		case <-ctx.Done():
			return
		}
	}
}

// forget removes partitions from this member.
func (s *Source) forget(left []*partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range left {
		p.leave()
		p.gone = true
		if s.parts[p.partitionID] == p {
			delete(s.parts, p.partitionID)
		}
	}
}

func partitionIDs(topics map[string][]int32) func(yield func(partitionID) bool) {
	return func(yield func(partitionID) bool) {
		for topic, partitions := range topics {
			for _, n := range partitions {
				if !yield(partitionID{topic, n}) {
					return
				}
			}
		}
	}
}

// fetchedOffsets notes the group's offsets, and refuses offsets that were
// committed in an earlier topic of the same name, because they would skip
// messages.
func (s *Source) fetchedOffsets(_ context.Context, _ *kgo.Client, resp *kmsg.OffsetFetchResponse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range resp.Groups {
		for j := range resp.Groups[i].Topics {
			t := &resp.Groups[i].Topics[j]
			for k := range t.Partitions {
				f := &t.Partitions[k]
				meta := readMetadata(f.Metadata, f.Offset)
				if f.Offset >= 0 && meta.partitions > 0 {
					s.startPartitions[t.Topic] = meta.partitions
				}
				if p := s.parts[partitionID{t.Topic, f.Partition}]; p != nil && f.Offset >= 0 && p.mark.next.offset < 0 {
					p.mark.next, p.mark.after, p.mark.last = mark{f.Offset, f.LeaderEpoch}, meta.after, meta.last
				}
				if then, now := meta.topicID, s.ids[t.Topic]; f.Offset >= 0 && then != "" && now != [16]byte{} && then != topicIDText(now) {
					err := fmt.Errorf("topic %q, partition %d: offset %d was committed in topic id %s, but the topic of that name is %s now; "+
						"its messages are different ones: reset the group's offsets", t.Topic, f.Partition, f.Offset, then, topicIDText(now))
					s.breakOff(err)
					return err
				}
			}
		}
	}
	return nil
}
