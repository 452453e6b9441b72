package semelkafka

import (
	"slices"
	"time"
)

// Stats is what a Source knows at a moment.
type Stats struct {
	// Rebalances counts how often partitions came or went.
	Rebalances int
	// Partitions are this member's, in the order of topic and number.
	Partitions []PartitionStats
}

// PartitionStats is where a member stands in a partition.
type PartitionStats struct {
	Topic     string
	Partition int32
	// Next is the offset that is to be committed: all below it is done. -1: not
	// known yet.
	Next int64
	// Lag is how many offsets there are from Next to the log's end, as of the
	// last fetch that brought a message.
	Lag int64
	// Queued is how many messages are fetched and not handed out.
	Queued int
	// Unfinished is how many are being handled, or wait for their key, for a
	// retry or for the store.
	Unfinished int
	// Ahead is how many are done, but behind one that is not.
	Ahead int
	// Held is for how long the same message has kept Next where it is; zero:
	// none does. It is the figure to watch.
	Held time.Duration
	// Paused: its queue is full while another's was empty, so that it is not
	// fetched.
	Paused bool
}

// Stats is where this member stands. It asks no broker.
func (s *Source) Stats() Stats {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{Rebalances: s.rebalances}
	for at, p := range s.parts {
		ps := PartitionStats{
			Topic: at.topic, Partition: at.partition, Next: p.mark.next.offset, Queued: len(p.queue), Unfinished: p.unfinished, Paused: p.paused,
		}
		if len(p.mark.entries) > 0 {
			ps.Held = now.Sub(p.since)
			if ps.Next < 0 {
				ps.Next = p.mark.entries[0].offset
			}
		}
		for _, e := range p.mark.entries {
			if e.done {
				ps.Ahead++
			}
		}
		if ps.Next >= 0 {
			ps.Lag = max(0, p.end-ps.Next)
		}
		st.Partitions = append(st.Partitions, ps)
	}
	slices.SortFunc(st.Partitions, func(a, b PartitionStats) int {
		return place{a.Topic, a.Partition}.compare(place{b.Topic, b.Partition})
	})
	return st
}
