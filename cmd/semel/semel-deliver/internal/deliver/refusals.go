package deliver

import (
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// refusals counts how often each message was refused since it was last sent with
// another result. The record does not count that, because nothing was done. After a
// restart the counts begin again.
type refusals struct {
	mu     sync.Mutex
	counts map[store.Key]int
}

// maxCounted is how many messages are counted. Beyond it some begin again.
const maxCounted = 1 << 16

func keyOf(x *semel.Execution) store.Key {
	return store.Key{Operation: x.Operation(), Tenant: x.Tenant(), Value: x.Key()}
}

// add counts a refusal and returns the number.
func (r *refusals) add(x *semel.Execution) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[store.Key]int{}
	}
	key := keyOf(x)
	if _, ok := r.counts[key]; !ok && len(r.counts) >= maxCounted {
		for other := range r.counts {
			delete(r.counts, other)
			break
		}
	}
	r.counts[key]++
	return r.counts[key]
}

func (r *refusals) forget(x *semel.Execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.counts, keyOf(x))
}
