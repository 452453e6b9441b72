package memstore

import "github.com/semel-go/semel/store"

// Colliding is a store in which only n hashes are left, so that keys meet.
func Colliding(o *Options, n uint64) *Store {
	s := New(o)
	full := s.hash
	s.hash = func(k store.Key) uint64 { return full(k) % n }
	return s
}
