package semelkafka

import (
	"slices"
)

// mark is a place in a partition: the offset to be read next, and the leader's
// epoch of the record before it.
type mark struct {
	offset int64
	epoch  int32
}

// watermark is what was handed out of a partition and may still have to come
// again. What is below it is done; only that is ever committed, however much is
// done above.
type watermark struct {
	next    mark    // to be committed
	entries []entry // handed out, from the lowest that is not done, in the order of their offsets
}

type entry struct {
	offset int64
	epoch  int32
	done   bool
}

// find is the place of an offset among the entries.
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

// out notes that a record is handed out, be it again.
func (w *watermark) out(offset int64, epoch int32) {
	if n := len(w.entries); n == 0 || w.entries[n-1].offset < offset {
		w.entries = append(w.entries, entry{offset: offset, epoch: epoch})
	}
}

// end is the offset behind all that was handed out.
func (w *watermark) end() int64 {
	if n := len(w.entries); n > 0 {
		return w.entries[n-1].offset + 1
	}
	return w.next.offset
}

// done notes that a record is done with, and reports whether the watermark
// moved. Offsets need not follow each other: compaction and transactions leave
// gaps.
func (w *watermark) done(offset int64) bool {
	i, ok := w.find(offset)
	if !ok {
		return false
	}
	w.entries[i].done = true
	n := 0
	for n < len(w.entries) && w.entries[n].done {
		w.next = mark{w.entries[n].offset + 1, w.entries[n].epoch}
		n++
	}
	if n == len(w.entries) {
		w.entries = w.entries[:0]
	} else {
		w.entries = w.entries[n:]
	}
	return n > 0
}
