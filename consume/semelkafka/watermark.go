package semelkafka

import (
	"slices"
)

// mark is a position in a partition: the next offset, and the leader epoch of
// the record before it.
type mark struct {
	offset int64
	epoch  int32
}

// watermark tracks the unfinished records of a partition. All offsets below it
// are done; only the watermark is committed.
type watermark struct {
	next    mark        // the position to commit
	after   int64       // the offset after the last message below next
	last    LastMessage // before after
	entries []entry     // returned by Next, from the lowest unfinished one on, by offset
}

type entry struct {
	offset int64
	end    int64 // the offset after it and the markers that follow it; 0: after it
	last   LastMessage
	done   bool
}

// find finds the entry of an offset.
func (w *watermark) find(offset int64) (int, bool) {
	return slices.BinarySearchFunc(w.entries, offset, func(e entry, offset int64) int {
		switch {
		case e.offset < offset:
			return -1
		case e.offset > offset:
			return 1
		}
		return 0
	})
}

// out notes that Next returns a record, perhaps again.
func (w *watermark) out(e entry) {
	if n := len(w.entries); n == 0 || w.entries[n-1].offset < e.offset {
		w.entries = append(w.entries, e)
	}
}

// end is the offset after all returned records.
func (w *watermark) end() int64 {
	if n := len(w.entries); n > 0 {
		return w.entries[n-1].offset + 1
	}
	return w.next.offset
}

// done notes that a record is done, and reports whether the watermark moved.
// Compaction and transactions leave gaps between offsets.
func (w *watermark) done(offset int64) bool {
	i, ok := w.find(offset)
	if !ok {
		return false
	}
	w.entries[i].done = true
	n := 0
	for n < len(w.entries) && w.entries[n].done {
		w.after = w.entries[n].offset + 1
		w.next = mark{max(w.after, w.entries[n].end), w.entries[n].last.LeaderEpoch}
		w.last = w.entries[n].last
		n++
	}
	if n == len(w.entries) {
		w.entries = w.entries[:0]
	} else {
		w.entries = w.entries[n:]
	}
	return n > 0
}
