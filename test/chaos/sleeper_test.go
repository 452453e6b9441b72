//go:build unix

package chaos

import (
	"fmt"
	"sync"

	"github.com/semel-go/semel"
)

// sleeper is a worker with one lane, which does what it is told.
type sleeper struct {
	f      *freezer
	policy semel.Policy
	p      *process
	orders chan string // the next key
	ended  chan question

	mu      sync.Mutex
	key     string
	stop    point // where it is to stand still
	stopped chan uint64
	goOn    chan bool // whether it has been frozen there
	gone    chan struct{}
}

func (f *freezer) worker(policy semel.Policy, how string) *sleeper {
	f.t.Helper()
	s := &sleeper{f: f, policy: policy, orders: make(chan string), ended: make(chan question), stopped: make(chan uint64), goOn: make(chan bool), gone: make(chan struct{})}
	d := openDesk(f.t, f.ledger[policy], s)
	s.p = startWorker(f.t, spec{Backend: f.b.Name, URL: f.in.URL, Desk: d.addr(), Lanes: 1, Policy: policy, Lease: sleepLease, Wrap: how})
	return s
}

func (s *sleeper) next(*visitor) reply {
	select {
	case key := <-s.orders:
		return reply{Key: key}
	case <-s.f.t.Context().Done():
		return reply{}
	}
}

func (s *sleeper) answered(_ *visitor, q question) {
	select {
	case s.ended <- q:
	case <-s.f.t.Context().Done():
	}
}

func (s *sleeper) left(v *visitor) {
	if v.key != "" {
		s.f.t.Errorf("%s: the worker is gone", v.key)
	}
	close(s.gone)
}

func (s *sleeper) reached(_ *visitor, p point, key string, fence uint64) bool {
	s.mu.Lock()
	here := s.stop == p && s.key == key
	if here {
		s.stop = ""
	}
	s.mu.Unlock()
	if !here {
		return false
	}
	select {
	case s.stopped <- fence:
		return <-s.goOn
	case <-s.f.t.Context().Done():
		return false
	}
}

// begin has the worker run a key up to the point. On a slow disk a claim may
// take longer than its lease, and is then given back before the handler
// starts: that is no zombie yet, so another key is tried.
func (s *sleeper) begin(key string, p point) (string, uint64, bool) {
	for try := range 20 {
		name := fmt.Sprintf("%s/%d", key, try)
		s.mu.Lock()
		s.key, s.stop = name, p
		s.mu.Unlock()
		select {
		case s.orders <- name:
		case <-s.gone:
			return "", 0, false
		}
		select {
		case <-s.gone:
			return "", 0, false
		case fence := <-s.stopped:
			return name, fence, true
		case q := <-s.ended:
			s.f.t.Logf("%s: not frozen %s: the worker was done before: %s %s", name, p, q.Class, q.Text)
		}
	}
	s.f.bad("%s: the worker did not get %s in 20 tries", key, p)
	return "", 0, false
}
