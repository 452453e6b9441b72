package memstore

import (
	"iter"
	"sync"

	"github.com/semel-go/semel/store"
)

// shard is a part of the records under one lock. Rows are found by the hash of
// their keys, for a map of numbers holds no pointers to the keys.
type shard struct {
	mu   sync.Mutex
	rows map[uint64]*row
	_    [48]byte // keeps two locks off one cache line
}

// find is nil if there is no record.
func (sh *shard) find(hash uint64, k *store.Key) *row {
	for w := sh.rows[hash]; w != nil; w = w.next {
		if w.is(k) {
			return w
		}
	}
	return nil
}

func (sh *shard) add(hash uint64, r *store.Record) {
	w := &row{next: sh.rows[hash]}
	w.pack(r)
	sh.rows[hash] = w
}

func (sh *shard) remove(hash uint64, gone *row) {
	first := sh.rows[hash]
	if first == gone && gone.next == nil {
		delete(sh.rows, hash)
		return
	}
	if first == gone {
		sh.rows[hash] = gone.next
		return
	}
	for w := first; w != nil; w = w.next {
		if w.next == gone {
			w.next = gone.next
			return
		}
	}
}

// all are the rows with their hashes. The one that was yielded last may be
// removed.
func (sh *shard) all() iter.Seq2[uint64, *row] {
	return func(yield func(uint64, *row) bool) {
		for hash, w := range sh.rows {
			for w != nil {
				next := w.next
				if !yield(hash, w) {
					return
				}
				w = next
			}
		}
	}
}
