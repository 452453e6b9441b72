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
	rows map[uint64]row
	more map[store.Key]row // those whose hash is another's, too; next to none
	_    [40]byte          // keeps two locks off one cache line
}

// find is nil if there is no record.
func (sh *shard) find(hash uint64, k *store.Key) row {
	if w := sh.rows[hash]; w != nil && w.is(k) {
		return w
	}
	if len(sh.more) == 0 {
		return nil
	}
	return sh.more[*k]
}

// put adds or replaces the row of a key.
func (sh *shard) put(hash uint64, k *store.Key, w row) {
	_, another := sh.more[*k]
	if !another {
		first := sh.rows[hash]
		another = first != nil && !first.is(k)
	}
	if another {
		if sh.more == nil {
			sh.more = map[store.Key]row{}
		}
		sh.more[*k] = w
		return
	}
	sh.rows[hash] = w
}

func (sh *shard) remove(hash uint64, gone row) {
	if first := sh.rows[hash]; first != nil && &first[0] == &gone[0] {
		delete(sh.rows, hash)
		return
	}
	r := gone.record(claimed{})
	delete(sh.more, r.Key)
}

// all are the rows with their hashes. The one that was yielded last may be
// removed.
func (sh *shard) all() iter.Seq2[uint64, row] {
	return func(yield func(uint64, row) bool) {
		for hash, w := range sh.rows {
			if !yield(hash, w) {
				return
			}
		}
		for _, w := range sh.more {
			if !yield(0, w) { // rows are told apart by where they are
				return
			}
		}
	}
}
