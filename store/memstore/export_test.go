package memstore

import "github.com/semel-go/semel/store"

// Colliding is a store in which only n hashes are left, so that keys meet.
func Colliding(o *Options, n uint64) *Store {
	s := New(o)
	full := s.hash
	s.hash = func(k store.Key) uint64 { return full(k) % n }
	return s
}

// MostOutcome is what a store takes.
const MostOutcome = maxOutcome

// Small is a store that refuses outcomes from so many bytes on.
func Small(o *Options, most int) *Store {
	s := New(o)
	s.most = most
	return s
}
