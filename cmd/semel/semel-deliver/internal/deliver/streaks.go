package deliver

import (
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// streaks counts how often in a row each message had one result: refused, or later. The
// record does not count that, because nothing was done. After a restart the counts begin
// again.
type streaks struct {
	mu     sync.Mutex
	counts map[store.Key]int
}

// maxCounted is how many messages are counted. Beyond it some begin again.
const maxCounted = 1 << 16

func keyOf(x *semel.Execution) store.Key {
	return store.Key{Operation: x.Operation(), Tenant: x.Tenant(), Value: x.Key()}
}

// add counts a result and returns the number.
func (s *streaks) add(x *semel.Execution) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[store.Key]int{}
	}
	key := keyOf(x)
	if _, ok := s.counts[key]; !ok && len(s.counts) >= maxCounted {
		for other := range s.counts {
			delete(s.counts, other)
			break
		}
	}
	s.counts[key]++
	return s.counts[key]
}

func (s *streaks) forget(x *semel.Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.counts, keyOf(x))
}
