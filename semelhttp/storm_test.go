package semelhttp_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

// storm is clients that send the same keys in every way that there is, to servers
// that come and go over one store, while the handlers, the store and the clients
// themselves fail in all their ways. Each of these has tests of its own; here they
// meet.
type storm struct {
	t     *testing.T
	seed  uint64
	store *memstore.Store
	dir   string          // of the bodies that were put in files
	older map[string]bool // goroutines of the tests before
	calm  atomic.Bool     // handlers and stores are good from now on

	mu      sync.Mutex
	rand    *rand.Rand
	nodes   []*stormNode
	runs    []*stormRun
	answers []*stormAnswer
	wrong   []string

	left sync.WaitGroup // what handlers leave behind, workers, and servers that end
}

// SEMEL_TEST_STORM=7,20 has the storms of 20 seeds from 7 on.
func TestStorm_ManyFaults_EachKeyHasOneOutcome(t *testing.T) {
	first, n := 1, 2
	if is := os.Getenv("SEMEL_TEST_STORM"); is != "" {
		if _, err := fmt.Sscanf(is, "%d,%d", &first, &n); err != nil {
			t.Fatalf("SEMEL_TEST_STORM: is %q; want the first seed and how many, as 7,20: %v", is, err)
		}
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := &storm{t: t, seed: uint64(seed), store: memstore.New(nil), dir: t.TempDir()} //nolint:gosec // it is a seed
			s.rand, s.older = rand.New(rand.NewPCG(s.seed, 0)), s.working()
			s.blow()
			s.settle()
			s.judge()
		})
	}
}

const (
	stormKeys    = 140
	stormWindow  = 32 // so many keys are sent at the same time: a key lives for some leases
	stormClients = 12
	stormOften   = 8 // how often each key is sent
	stormLease   = 200 * time.Millisecond
)

// stormForm is a way in which a route is protected.
type stormForm struct {
	path         string
	policy       semel.Policy
	wait         time.Duration
	detach, hold bool
	large        bool // large bodies
	method       string
}

var stormForms = []stormForm{
	{path: "/retry", method: http.MethodPost},
	{path: "/park", method: http.MethodPost, policy: semel.Park},
	{path: "/wait", method: http.MethodPatch, wait: 150 * time.Millisecond, large: true},
	{path: "/detach", method: http.MethodPost, policy: semel.Park, wait: 100 * time.Millisecond, detach: true},
	{path: "/hold", method: http.MethodPost, hold: true, detach: true, large: true},
	{path: "/head", method: http.MethodHead},
	{path: "/accept", method: http.MethodPost},
}

func formOf(key int) *stormForm { return &stormForms[key%len(stormForms)] }

// upTo is from 0 to n-1.
func (s *storm) upTo(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

func (s *storm) oneIn(n int) bool { return s.upTo(n) == 0 }

func (s *storm) bad(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// blow has clients send keys until each had its time.
func (s *storm) blow() {
	s.start(false)
	s.start(true)
	var sent atomic.Int64
	var clients, weather sync.WaitGroup
	over := make(chan struct{})
	weather.Go(func() { s.weather(over) })
	for c := range stormClients {
		r := rand.New(rand.NewPCG(s.seed, uint64(c)+1))
		clients.Go(func() {
			for {
				at := int(sent.Add(1)) / stormOften
				if at >= stormKeys {
					return
				}
				s.send(r, max(0, at-r.IntN(stormWindow)))
			}
		})
	}
	s.within("the clients", clients.Wait)
	close(over)
	weather.Wait()
}

// weather is what comes from outside: servers that are killed or shut down, and
// stores that go away, or take no renewals or no settlements for a while.
func (s *storm) weather(over chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(s.upTo(120)) * time.Millisecond):
		}
		n := s.node()
		switch s.upTo(7) {
		case 0:
			s.replace(n, n.kill)
		case 1:
			s.replace(n, n.shutdown)
		case 2:
			n.hold(&n.down, time.Duration(s.upTo(600))*time.Millisecond)
		case 3:
			n.hold(&n.stale, 4*stormLease)
		case 4:
			n.hold(&n.mute, 3*stormLease)
		default:
			n.fault.Deliver(s.t.Context())
		}
	}
}

// replace has another server take over, over another protocol perhaps.
func (s *storm) replace(n *stormNode, end func()) {
	s.start(s.oneIn(2))
	s.mu.Lock()
	s.nodes = slices.DeleteFunc(s.nodes, func(is *stormNode) bool { return is == n })
	s.mu.Unlock()
	s.left.Go(end)
}

func (s *storm) node() *stormNode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[s.rand.IntN(len(s.nodes))]
}

// within fails the test if f takes for ever.
func (s *storm) within(what string, f func()) {
	s.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience / 4):
		s.t.Fatalf("%s: stuck for %v\n%s", what, patience/4, stacks())
	}
}

// stacks are those of all goroutines.
func stacks() string {
	b := make([]byte, 4<<20)
	return string(b[:runtime.Stack(b, true)])
}

// working are the goroutines that are somewhere in Semel, or come from there, by
// name: none of those that were there before the storm.
func (s *storm) working() map[string]bool {
	all := map[string]bool{}
	for g := range strings.SplitSeq(stacks(), "\n\n") {
		name, _, _ := strings.Cut(g, " [")
		if strings.Contains(g, "semel-go/semel") && !strings.Contains(g, "testing.tRunner(") && !s.older[name] && !strings.Contains(g, "semelhttp_test.stacks") {
			all[name] = true
		}
	}
	return all
}
