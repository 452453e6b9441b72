package semelkafka

import (
	"slices"
	"time"

	"github.com/semel-go/semel/consume"
	"github.com/twmb/franz-go/pkg/kgo"
)

// partitionID names a partition.
type partitionID struct {
	topic     string
	partition int32
}

// partition is one assignment of a partition to this member. Source.mu guards
// its fields.
type partition struct {
	partitionID
	queue     []item         // polled or given back, and not handed out; in the order of their offsets
	bytes     int            // of the queue
	polled    int64          // the next offset that the client may give; -1: any
	from      int64          // all messages below it are done: the offset that the ledger said to read from, or a later one
	beginning *beginning     // nil: it is known where the client reads, or the client has not asked
	check     *lastCheck     // nil: none, or done
	ledgerID  GroupPartition // the partition's name in the ledger
	batched   bool           // there is a ledger
	mark      watermark
	dirty     bool  // the watermark is above what was committed
	skipping  bool  // skipLost is at work
	end       int64 // the log's end, as of the last fetch; 0: not known

	unfinished int       // returned by Next, and neither acked nor given back
	waiting    int       // of them, those that wait for something else than a free handler
	since      time.Time // since when the lowest unfinished record is the same
	paused     bool
	revoked    chan struct{} // closed when the partition is taken away
	leaving    bool          // revoked is closed
	gone       bool          // nothing counts any more
}

// item is a record with its message.
type item struct {
	r    *kgo.Record
	m    *consume.Message
	from int64 // as in Item
	end  int64 // the offset after the record and the markers that follow it; 0: of the record
}

func newPartition(at partitionID) *partition {
	return &partition{partitionID: at, polled: -1, mark: watermark{next: mark{offset: -1, epoch: -1}}, revoked: make(chan struct{})}
}

// The limits of a partition's queue. When it is full, the client stops fetching
// the partition until half of the queue is left. Records that it had fetched by
// then, a part of one fetch, still come.
const (
	queueRecords = 256
	queueBytes   = 4 << 20
)

func (p *partition) full() bool { return len(p.queue) >= queueRecords || p.bytes >= queueBytes }

func (p *partition) low() bool { return len(p.queue) <= queueRecords/2 && p.bytes <= queueBytes/2 }

// put appends a record.
func (p *partition) put(it item) {
	it.from = max(p.from, p.polled)
	p.queue = append(p.queue, it)
	p.bytes += size(it.r)
	p.polled = it.r.Offset + 1
}

// pass moves the position past the marker of a transaction, which is no message,
// once the records before it are done. It reports whether the watermark has moved.
func (p *partition) pass(r *kgo.Record) bool {
	end := r.Offset + 1
	if n := len(p.queue); n > 0 {
		p.queue[n-1].end = end
	}
	if n := len(p.mark.entries); n > 0 && (len(p.queue) == 0 || p.queue[len(p.queue)-1].r.Offset == p.mark.entries[n-1].offset) {
		p.mark.entries[n-1].end = end
		return false
	}
	if len(p.queue) > 0 || end <= p.mark.next.offset {
		return false
	}
	if p.mark.next.offset < 0 {
		p.mark.after = r.Offset
	}
	p.mark.next, p.dirty = mark{end, r.LeaderEpoch}, true
	return true
}

// back inserts a record that was given back, by its offset.
func (p *partition) back(it item) {
	i, there := slices.BinarySearchFunc(p.queue, it.r.Offset, func(q item, offset int64) int { return int(q.r.Offset - offset) })
	if !there {
		p.queue = slices.Insert(p.queue, i, it)
		p.bytes += size(it.r)
	}
}

// pop takes the first record of the queue.
func (p *partition) pop(now time.Time) item {
	it := p.queue[0]
	p.queue[0] = item{}
	p.queue = p.queue[1:]
	p.bytes -= size(it.r)
	if len(p.mark.entries) == 0 {
		p.since = now
	}
	p.mark.out(entry{offset: it.r.Offset, end: it.end, last: lastOf(it.r)})
	p.unfinished++
	return it
}

// leave marks the partition as taken away.
func (p *partition) leave() {
	if p.leaving {
		return
	}
	p.leaving = true
	close(p.revoked)
	p.queue, p.bytes = nil, 0
}

func size(r *kgo.Record) int {
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}
