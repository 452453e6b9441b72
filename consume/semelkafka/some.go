package semelkafka

// some makes values of records some at a time, for one goroutine: to make each
// alone costs as much again. Whoever keeps one keeps those beside it, and their
// records: so these are few, and short.
type some[T any] struct {
	left int // how many are wanted at most
	room []T
	size int // of the records of those that were made with room
}

// How many are made at a time at most, and of how many bytes their records may be.
const (
	someValues = 32
	someBytes  = 64 << 10
)

// next is a value for a record of so many bytes.
func (s *some[T]) next(size int) *T {
	s.left--
	if size > someBytes {
		return new(T)
	}
	if len(s.room) == 0 || s.size+size > someBytes {
		s.room, s.size = make([]T, max(1, min(someValues, s.left+1))), 0
	}
	v := &s.room[0]
	s.room, s.size = s.room[1:], s.size+size
	return v
}
