package demo

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/demo/fleet"
	"github.com/semel-go/semel/cmd/semel/internal/demo/ledger"
	"github.com/semel-go/semel/cmd/semel/internal/demo/proc"
)

// side is one of the two ways to pay: straight, or through the proxy.
type side struct {
	name  string
	plan  *fleet.Plan
	fleet *fleet.Fleet

	worker, proxy  *target // proxy is nil on the straight side
	journal, store string

	mu   sync.Mutex
	tail *ledger.Tail
}

// target is a process to kill.
type target struct {
	*proc.Process
	health string // a URL
	// inFlight counts what the frozen process is working on.
	inFlight func() (int, error)

	kills, lost atomic.Int64 // how often it was killed, and how many were in flight then
}

// settle is how long a frozen process needs until what it has sent is seen.
const settle = 2 * time.Millisecond

// straight starts a ledger, and clients that talk to it.
func straight(ctx context.Context, g *proc.Group, o *Options, plan *fleet.Plan, dir string) (*side, error) {
	s := &side{name: "without Semel", plan: plan, journal: filepath.Join(dir, "without.ledger")}
	address, err := s.startWorker(ctx, g, o, "without-worker")
	if err != nil {
		return nil, err
	}
	s.fleet = fleet.New(plan, "http://"+address+"/payments")
	return s, nil
}

// guarded starts a ledger, a proxy before it, and clients that talk to that.
func guarded(ctx context.Context, g *proc.Group, o *Options, plan *fleet.Plan, dir string) (*side, error) {
	s := &side{name: "with Semel", plan: plan, journal: filepath.Join(dir, "with.ledger"), store: filepath.Join(dir, "semel.db")}
	upstream, err := s.startWorker(ctx, g, o, "with-worker")
	if err != nil {
		return nil, err
	}
	address, err := proc.Address()
	if err != nil {
		return nil, err
	}
	admin, err := proc.Address()
	if err != nil {
		return nil, err
	}
	p, err := g.Start("with-proxy", o.Program, proxyArgs(address, admin, "http://"+upstream, s.store, o.OnDoubt)...)
	if err != nil {
		return nil, err
	}
	s.fleet = fleet.New(plan, "http://"+address+"/payments")
	s.proxy = &target{Process: p, health: "http://" + admin + "/readyz", inFlight: func() (int, error) {
		return int(s.fleet.InFlight.Load()), nil
	}}
	return s, p.Ready(ctx, s.proxy.health)
}

func proxyArgs(listen, admin, upstream, store, onDoubt string) []string {
	args := []string{
		"proxy", "--listen=" + listen, "--admin-listen=" + admin, "--upstream=" + upstream, "--store=sqlite:" + store,
		"--scope=header:" + ledger.TenantHeader, "--on-doubt=" + onDoubt, "--lease=" + lease.String(),
		"--sweep-every=250ms", "--drain=5s",
	}
	if onDoubt == "park" {
		args = append(args, "--reconcile-url="+upstream+"/reconcile", "--reconcile-every=250ms")
	}
	return args
}

func (s *side) startWorker(ctx context.Context, g *proc.Group, o *Options, name string) (address string, err error) {
	s.tail = ledger.NewTail(s.journal)
	if address, err = proc.Address(); err != nil {
		return "", err
	}
	p, err := g.Start(name, o.Program, "demo-ledger", "--listen="+address, "--file="+s.journal, "--work="+work.String())
	if err != nil {
		return "", err
	}
	s.worker = &target{Process: p, health: "http://" + address + "/healthz", inFlight: func() (int, error) {
		var before, after int
		err := s.look(func(st *ledger.State) { before, after = st.InFlight() })
		return before + after, err
	}}
	return address, p.Ready(ctx, s.worker.health)
}

// look shows the ledger's journal as far as it is written.
func (s *side) look(f func(*ledger.State)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.tail.Update(); err != nil {
		return err
	}
	f(s.tail.State)
	return nil
}

// targets are the processes to kill, in turn.
func (s *side) targets() []*target {
	if s.proxy == nil {
		return []*target{s.worker}
	}
	return []*target{s.worker, s.proxy}
}

// stop lets what is left end in order.
func (s *side) stop() {
	if s.proxy != nil {
		s.proxy.Stop(10 * time.Second)
	}
	s.worker.Stop(10 * time.Second)
}
