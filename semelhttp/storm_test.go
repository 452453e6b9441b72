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

// storm runs many faults at the same time: clients send the same keys in different
// ways to servers that start and stop over one store, while handlers, the store and
// the clients fail. Other tests check each fault alone.
type storm struct {
	t                *testing.T
	seed             uint64
	store            *memstore.Store
	dir              string          // for the files of spooled bodies
	goroutinesBefore map[string]bool // goroutines of earlier tests
	faultsOff        atomic.Bool     // handlers and stores do not fail any more

	mu       sync.Mutex
	rand     *rand.Rand
	nodes    []*stormNode
	runs     []*stormRun
	answers  []*stormAnswer
	failures []string

	unanswered map[stormRequest]bool

	background sync.WaitGroup // goroutines of handlers, workers, and stopping servers
}

// SEMEL_TEST_STORM=7,20 runs 20 seeds, starting with seed 7.
func TestStorm_ManyFaults_EachKeyHasOneOutcome(t *testing.T) {
	first, n := 1, 2
	if is := os.Getenv("SEMEL_TEST_STORM"); is != "" {
		if _, err := fmt.Sscanf(is, "%d,%d", &first, &n); err != nil {
			t.Fatalf("SEMEL_TEST_STORM: is %q; want the first seed and how many, as 7,20: %v", is, err)
		}
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := &storm{t: t, seed: uint64(seed), store: memstore.New(nil), dir: t.TempDir(), unanswered: map[stormRequest]bool{}} //nolint:gosec // it is a seed
			s.rand, s.goroutinesBefore = rand.New(rand.NewPCG(s.seed, 0)), s.semelGoroutines()
			s.runClients()
			s.settle()
			s.judge()
		})
	}
}

const (
	stormKeys        = 140
	stormWindow      = 32 // keys that are sent at the same time; a key is sent over several leases
	stormClients     = 12
	stormSendsPerKey = 8 // requests for each key
	stormLease       = 200 * time.Millisecond
)

// stormForm is a route and its options.
type stormForm struct {
	path              string
	policy            semel.Policy
	wait              time.Duration
	detach, holdFlush bool
	large             bool // large bodies
	method            string
}

var stormForms = []stormForm{
	{path: "/retry", method: http.MethodPost},
	{path: "/park", method: http.MethodPost, policy: semel.Park},
	{path: "/wait", method: http.MethodPatch, wait: 150 * time.Millisecond, large: true},
	{path: "/detach", method: http.MethodPost, policy: semel.Park, wait: 100 * time.Millisecond, detach: true},
	{path: "/hold", method: http.MethodPost, holdFlush: true, detach: true, large: true},
	{path: "/head", method: http.MethodHead},
	{path: "/accept", method: http.MethodPost},
}

func formOf(key int) *stormForm { return &stormForms[key%len(stormForms)] }

// randN returns a random number from 0 to n-1.
func (s *storm) randN(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

func (s *storm) oneIn(n int) bool { return s.randN(n) == 0 }

func (s *storm) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

// runClients sends every key stormSendsPerKey times.
func (s *storm) runClients() {
	s.start(false)
	s.start(true)
	var sent atomic.Int64
	var clients, weather sync.WaitGroup
	over := make(chan struct{})
	weather.Go(func() { s.injectFaults(over) })
	for c := range stormClients {
		r := rand.New(rand.NewPCG(s.seed, uint64(c)+1))
		clients.Go(func() {
			for {
				at := int(sent.Add(1)) / stormSendsPerKey
				if at >= stormKeys {
					return
				}
				s.send(r, max(0, at-r.IntN(stormWindow)))
			}
		})
	}
	s.waitFor("the clients", clients.Wait)
	close(over)
	weather.Wait()
}

// injectFaults kills and stops servers, and makes a node's store fail for a while:
// completely, or for renewals or settlements only.
func (s *storm) injectFaults(over chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(time.Duration(s.randN(120)) * time.Millisecond):
		}
		n := s.node()
		switch s.randN(7) {
		case 0:
			s.replaceNode(n, n.kill)
		case 1:
			s.replaceNode(n, n.shutdown)
		case 2:
			n.failFor(&n.down, time.Duration(s.randN(600))*time.Millisecond)
		case 3:
			n.failFor(&n.renewDown, 4*stormLease)
		case 4:
			n.failFor(&n.settleDown, 3*stormLease)
		default:
			n.fault.Deliver(s.t.Context())
		}
	}
}

// replaceNode starts another server, perhaps with another protocol, and ends n.
func (s *storm) replaceNode(n *stormNode, end func()) {
	s.start(s.oneIn(2))
	s.mu.Lock()
	s.nodes = slices.DeleteFunc(s.nodes, func(is *stormNode) bool { return is == n })
	s.mu.Unlock()
	s.background.Go(end)
}

func (s *storm) node() *stormNode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[s.rand.IntN(len(s.nodes))]
}

// waitFor fails the test if f does not return in time.
func (s *storm) waitFor(what string, f func()) {
	s.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(waitLimit):
		s.t.Fatalf("%s: stuck for %v\n%s", what, waitLimit, stacks())
	}
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	b := make([]byte, 4<<20)
	return string(b[:runtime.Stack(b, true)])
}

// semelGoroutines returns the names of goroutines that run code of Semel or were
// started by it, except those of earlier tests.
func (s *storm) semelGoroutines() map[string]bool {
	all := map[string]bool{}
	for g := range strings.SplitSeq(stacks(), "\n\n") {
		name, _, _ := strings.Cut(g, " [")
		if strings.Contains(g, "semel-go/semel") && !strings.Contains(g, "testing.tRunner(") && !s.goroutinesBefore[name] && !strings.Contains(g, "semelhttp_test.stacks") {
			all[name] = true
		}
	}
	return all
}
