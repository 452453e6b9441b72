package memstore

import (
	"iter"
	"sync"

	"github.com/semel-go/semel/store"
)

// shard is a part of the records under one lock. A claim is kept as it is, for
// it is settled soon; what is settled rests, packed. Both are found by the
// hash of their keys, for a map of numbers holds no pointers to the keys.
type shard struct {
	mu    sync.Mutex
	held  map[uint64]*store.Record // claims
	spare *store.Record            // for the next claim
	rest  map[uint64]place
	more  map[store.Key]place // those whose hash is another's, too; next to none
	pages pages
	_     [32]byte // keeps two locks off one cache line
}

// find is the record of a key: a claim itself, else into, which it fills. Nil:
// there is none. Texts that has holds take no memory of their own.
func (sh *shard) find(hash uint64, k *store.Key, has *claimed, into *store.Record) *store.Record {
	if r := sh.held[hash]; r != nil && r.Key == *k {
		return r
	}
	if at, ok := sh.restsAt(hash, k); ok {
		*into = sh.row(at).record(has)
		return into
	}
	return nil
}

// restsAt is where the row of a key is.
func (sh *shard) restsAt(hash uint64, k *store.Key) (at place, ok bool) {
	if at, ok = sh.rest[hash]; ok && sh.row(at).is(k) {
		return at, true
	}
	if len(sh.more) == 0 {
		return at, false
	}
	at, ok = sh.more[*k]
	return at, ok
}

func (sh *shard) row(at place) row { return rowAt(sh.pages.at(at)) }

// put keeps the record of a key that has none.
func (sh *shard) put(hash uint64, r *store.Record) {
	if r.State == store.Processing && sh.held[hash] == nil {
		claim := sh.spare
		if sh.spare = nil; claim == nil {
			claim = new(store.Record)
		}
		*claim = *r
		sh.held[hash] = claim
		return
	}
	size := rowSize(r)
	at, mem := sh.pages.add(size)
	pack(r, mem)
	if _, another := sh.rest[hash]; !another {
		sh.rest[hash] = at
		return
	}
	if sh.more == nil {
		sh.more = map[store.Key]place{}
	}
	sh.more[r.Key] = at
}

// remove forgets the record of a key.
func (sh *shard) remove(hash uint64, k *store.Key) {
	if r := sh.held[hash]; r != nil && r.Key == *k {
		delete(sh.held, hash)
		*r = store.Record{}
		sh.spare = r
		return
	}
	if at, ok := sh.rest[hash]; ok && sh.row(at).is(k) {
		sh.drop(slot{hash: hash}, at)
	} else if at, ok := sh.more[*k]; ok {
		sh.drop(slot{key: *k, more: true}, at)
	}
}

// slot is what a row is found by.
type slot struct {
	hash uint64
	key  store.Key
	more bool
}

func (sh *shard) drop(s slot, at place) {
	if s.more {
		delete(sh.more, s.key)
	} else {
		delete(sh.rest, s.hash)
	}
	sh.pages.drop(at, len(sh.row(at)))
}

// resting are the places of the rows. The one that was yielded last may be
// dropped, or moved.
func (sh *shard) resting() iter.Seq2[slot, place] {
	return func(yield func(slot, place) bool) {
		for hash, at := range sh.rest {
			if !yield(slot{hash: hash}, at) {
				return
			}
		}
		for k, at := range sh.more {
			if !yield(slot{key: k, more: true}, at) {
				return
			}
		}
	}
}

// all are the records, or those that pass a look at their numbers.
func (sh *shard) all(pass func(*store.Record) bool) iter.Seq[store.Record] {
	return func(yield func(store.Record) bool) {
		for _, r := range sh.held {
			if pass(r) && !yield(*r) {
				return
			}
		}
		for _, at := range sh.resting() {
			w := sh.row(at)
			if r := w.numbers(); pass(&r) && !yield(w.record(nil)) {
				return
			}
		}
	}
}

// tidy moves what is left in pages of which most has gone: else a row that
// stays would keep the memory of a hundred that have not.
func (sh *shard) tidy() {
	if !sh.pages.anySparse() {
		return
	}
	for s, at := range sh.resting() {
		if !sh.pages.isSparse(at) {
			continue
		}
		w := sh.row(at)
		to, mem := sh.pages.add(len(w))
		copy(mem, w)
		sh.pages.drop(at, len(w))
		if s.more {
			sh.more[s.key] = to
		} else {
			sh.rest[s.hash] = to
		}
	}
}
