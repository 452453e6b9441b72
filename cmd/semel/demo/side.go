package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/fleet"
	"github.com/semel-go/semel/cmd/semel/demo/internal/ledger"
	"github.com/semel-go/semel/cmd/semel/demo/internal/proc"
)

// side is one of the two ways to pay: directly, or through semel proxy.
type side struct {
	name  string
	plan  *fleet.Plan
	fleet *fleet.Fleet

	service, proxy *target // proxy is nil without Semel
	journal        string
	records        *records // nil without Semel

	mu   sync.Mutex
	tail *ledger.Tail
}

// straight starts a ledger, and clients that talk to it.
func straight(ctx context.Context, g *proc.Group, o *Options, plan *fleet.Plan, dir string) (*side, error) {
	s := &side{name: "without Semel", plan: plan, journal: filepath.Join(dir, "without.ledger")}
	address, err := s.startService(ctx, g, o, "without-payment-service")
	if err != nil {
		return nil, err
	}
	s.fleet = fleet.New(plan, "http://"+address+"/payments")
	return s, nil
}

// guarded starts a ledger, a proxy before it, and clients that talk to that.
func guarded(ctx context.Context, g *proc.Group, o *Options, plan *fleet.Plan, dir string) (*side, error) {
	s := &side{name: "with Semel", plan: plan, journal: filepath.Join(dir, "with.ledger")}
	var err error
	if s.records, err = newRecords(o, dir); err != nil {
		return nil, err
	}
	upstream, err := s.startService(ctx, g, o, "with-payment-service")
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
	p, err := g.StartWith(s.records.env(), "with-proxy", o.Program, proxyArgs(address, admin, "http://"+upstream, s.records.args(), o.OnDoubt)...)
	if err != nil {
		return nil, err
	}
	s.fleet = fleet.New(plan, "http://"+address+"/payments")
	s.proxy = (&target{Process: p, title: "semel proxy", inFlight: func() (int, error) {
		return int(s.fleet.InFlight.Load()), nil
	}}).answers("http://" + admin + "/readyz")
	if err := s.proxy.ready(ctx); err != nil {
		return nil, errors.Join(err, s.abandon(ctx))
	}
	return s, nil
}

func proxyArgs(listen, admin, upstream string, store []string, onDoubt string) []string {
	args := append([]string{
		"proxy", "--listen=" + listen, "--admin-listen=" + admin, "--upstream=" + upstream,
		"--scope=header:" + ledger.TenantHeader, "--on-doubt=" + onDoubt, "--lease=" + lease.String(),
		"--sweep-every=250ms", "--drain=5s",
	}, store...)
	if onDoubt == "park" {
		args = append(args, "--reconcile-url="+upstream+"/reconcile", "--reconcile-every=250ms")
	}
	return args
}

func (s *side) startService(ctx context.Context, g *proc.Group, o *Options, name string) (address string, err error) {
	s.tail = ledger.NewTail(s.journal)
	if address, err = proc.Address(); err != nil {
		return "", err
	}
	p, err := g.Start(name, o.Program, roleLedger, "--listen="+address, "--journal="+s.journal, "--work="+work.String())
	if err != nil {
		return "", err
	}
	s.service = (&target{Process: p, title: "payment service", inFlight: func() (int, error) {
		var before, after int
		err := s.look(func(st *ledger.State) { before, after = st.InFlight() })
		return before + after, err
	}}).answers("http://" + address + "/healthz")
	return address, s.service.ready(ctx)
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
		return []*target{s.service}
	}
	return []*target{s.service, s.proxy}
}

// storm is what disturbs the side.
func (s *side) storm() *storm {
	return &storm{
		targets: s.targets(), steps: int64(len(s.plan.Steps)), done: s.fleet.Steps.Load,
		disturb: func() error { s.fleet.Disturbed.Store(true); return nil },
	}
}

// stop lets what is left end in order, for so long each.
func (s *side) stop(patience time.Duration) {
	if s.proxy != nil {
		s.proxy.Stop(patience)
	}
	s.service.Stop(patience)
}

// abandon is for a side that will not be counted.
func (s *side) abandon(ctx context.Context) error {
	s.stop(0)
	return s.records.drop(ctx)
}

// run lets the clients loose, and the storm, and counts.
func (s *side) run(ctx context.Context, o *Options, stderr io.Writer) (Figures, error) {
	st := s.storm()
	err := perform(ctx, o, &act{
		storm: st, kills: o.Kills * len(st.targets), hope: o.Clients * 3 / 4, now: s.now,
		work: func(ctx context.Context) error { s.fleet.Run(ctx, o.Clients); return nil },
	}, stderr)
	if err != nil {
		return Figures{}, errors.Join(err, s.abandon(ctx))
	}
	s.stop(10 * time.Second)
	f, err := s.figures(ctx)
	f.Timeline = st.kills
	return f, errors.Join(err, s.records.drop(ctx))
}

func (s *side) figures(ctx context.Context) (f Figures, err error) {
	var is func(ledger.ID) bool
	if s.records != nil {
		done, err := completed(ctx, s.records.url)
		if err != nil {
			return f, err
		}
		is = func(id ledger.ID) bool { return done[id] }
	}
	err = s.look(func(st *ledger.State) { f = count(s.plan.Orders, s.fleet.Outcomes(), st, is) })
	f.counters(s)
	return f, err
}
