package semelkafka

import (
	"slices"
	"time"
)

// Stats is a snapshot of a Source.
type Stats struct {
	// Rebalances counts how often partitions came or went.
	Rebalances int
	// Partitions are this member's, in the order of topic and number.
	Partitions []PartitionStats
}

// PartitionStats is a member's position in a partition.
type PartitionStats struct {
	Topic     string
	Partition int32
	// Next is the offset to commit next: all lower ones are done. -1: unknown.
	Next int64
	// Lag is the number of offsets from Next to the log's end, as of the last
	// fetch that returned a message.
	Lag int64
	// Queued is the number of fetched messages that Next has not returned.
	Queued int
	// Unfinished is the number of messages that are handled, or wait for their
	// key, a retry or the store.
	Unfinished int
	// Ahead is the number of messages that are done after an unfinished one.
	Ahead int
	// Held is how long the same message has kept Next in its place; zero: none
	// does. It is the most important figure to watch.
	Held time.Duration
	// Paused: the partition is not fetched, because its queue is full while
	// another's was empty.
	Paused bool
}

// Stats returns this member's state. It asks no broker.
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
		return partitionID{a.Topic, a.Partition}.compare(partitionID{b.Topic, b.Partition})
	})
	return st
}
