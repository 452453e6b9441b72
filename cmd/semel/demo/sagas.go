package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/journal"
	"github.com/semel-go/semel/cmd/semel/demo/internal/orders"
	"github.com/semel-go/semel/cmd/semel/demo/internal/proc"
)

// workers is how many processes make the orders.
const workers = 3

// sagaLease is short, so that the orders of a killed worker go on soon. In production it
// would be the default, 30 s.
const sagaLease = 2 * time.Second

// desk is one of the two ways to make orders in three systems: without a journal of the
// steps, or as sagas.
type desk struct {
	name  string
	plan  []orders.Order
	shop  *orders.Shop
	app   orders.App
	procs []*target
	logs  []*log[orders.State]

	next, placed, ended, most atomic.Int64 // orders; clients place at most so many
}

// openDesk starts the workers. Close it.
func openDesk(ctx context.Context, g *proc.Group, o *Options, plan []orders.Order, dir string, semel bool) (_ *desk, err error) {
	d := &desk{name: "without Semel", plan: plan}
	short := "without"
	if semel {
		d.name, short = "with Semel", "with"
	}
	d.most.Store(int64(len(plan)))
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	wo := &orders.Options{
		Shop: filepath.Join(dir, short+"-shop.db"), File: filepath.Join(dir, short+".db"), Work: work, Lease: sagaLease, Semel: semel, FreshKeys: o.FreshKeys,
	}
	if d.shop, err = orders.OpenShop(ctx, wo.Shop, 0); err != nil {
		return nil, err
	}
	if d.app, err = orders.OpenApp(ctx, wo, d.shop); err != nil {
		return nil, err
	}
	for i := range workers {
		name := fmt.Sprintf("%s-worker-%d", short, i+1)
		path := filepath.Join(dir, name+".journal")
		p, err := g.Start(name, o.Program, workerArgs(wo, path)...)
		if err != nil {
			return nil, err
		}
		st := orders.NewState()
		l := &log[orders.State]{state: st, update: journal.NewTail(path, st.Apply).Update}
		d.logs, d.procs = append(d.logs, l), append(d.procs, newWorker(p, fmt.Sprint("worker ", i+1), l))
	}
	for _, t := range d.procs {
		if err := t.ready(ctx); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func workerArgs(o *orders.Options, journal string) []string {
	args := []string{roleWorker, "--shop=" + o.Shop, "--file=" + o.File, "--journal=" + journal, "--work=" + o.Work.String(), "--lease=" + o.Lease.String()}
	if o.Semel {
		args = append(args, "--semel")
	}
	if o.FreshKeys {
		args = append(args, "--fresh-keys")
	}
	return args
}

// newWorker is a worker as a target: worth a kill when it has orders in flight.
func newWorker(p *proc.Process, title string, l *log[orders.State]) *target {
	t := &target{Process: p, title: title}
	t.boots(func() (boots int, _ error) {
		err := l.look(func(st *orders.State) { boots = st.Boots })
		return boots, err
	})
	t.inFlight = func() (n int, _ error) {
		err := l.look(func(st *orders.State) { n = st.InFlight() })
		return n, err
	}
	return t
}

// close ends the workers and closes the files.
func (d *desk) close() (err error) {
	for _, t := range d.procs {
		t.Stop(0)
	}
	if d.app != nil {
		err = d.app.Close()
	}
	if d.shop != nil {
		err = errors.Join(err, d.shop.Close())
	}
	return err
}

// run lets the clients loose, and the storm, and audits the books.
func (d *desk) run(ctx context.Context, o *Options, stderr io.Writer) (f SagaFigures, err error) {
	defer func() { err = errors.Join(err, d.close()) }()
	st := &storm{targets: d.procs, steps: int64(len(d.plan)), done: d.ended.Load, disturb: d.disturb, hold: d.most.Store}
	err = perform(ctx, o, &act{
		storm: st, kills: o.Kills, hope: 3, now: d.now,
		work: func(ctx context.Context) error { return d.work(ctx, o.Clients) },
	}, stderr)
	if err != nil {
		return f, err
	}
	for _, t := range d.procs {
		t.Stop(10 * time.Second)
	}
	f, err = d.figures(ctx)
	f.Timeline = st.kills
	return f, err
}

// work has so many clients place the orders, and returns when all orders have ended that
// will.
func (d *desk) work(ctx context.Context, clients int) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var g sync.WaitGroup
	for range clients {
		g.Go(func() {
			if err := d.place(ctx); err != nil {
				fail(err)
			}
		})
	}
	g.Go(func() {
		if err := d.watch(ctx); err != nil {
			fail(err)
		}
	})
	g.Wait()
	return context.Cause(ctx)
}

func (d *desk) place(ctx context.Context) error {
	for {
		n := d.next.Add(1) - 1
		if n >= int64(len(d.plan)) {
			return nil
		}
		for n >= d.most.Load() {
			if !pause(ctx, time.Millisecond) {
				return context.Cause(ctx)
			}
		}
		if err := d.app.Place(ctx, &d.plan[n]); err != nil {
			return err
		}
		d.placed.Add(1)
	}
}

// watch counts the orders that have ended, until all have. An order that was left by a
// dead process counts, because nobody will end it.
func (d *desk) watch(ctx context.Context) error {
	for {
		begun := time.Now()
		pids, err := d.pids() // before the answers: an order of a process that has died meanwhile may be tried again
		if err != nil {
			return err
		}
		answers, err := d.app.Answers(ctx)
		if err != nil {
			return err
		}
		n := int64(0)
		for _, a := range answers {
			if a.End != orders.Open || a.PID != 0 && !pids[a.PID] {
				n++
			}
		}
		if d.ended.Store(n); n == int64(len(d.plan)) {
			return nil
		}
		// A look at many orders costs more, so it is taken less often.
		if !pause(ctx, max(10*time.Millisecond, 4*time.Since(begun))) {
			return context.Cause(ctx)
		}
	}
}

// pids are the processes that work now.
func (d *desk) pids() (map[int]bool, error) {
	all := map[int]bool{}
	for _, l := range d.logs {
		if err := l.look(func(st *orders.State) { all[st.PID] = true }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// disturb ends the measurement of latencies before the first kill.
func (d *desk) disturb() error {
	for _, l := range d.logs {
		if err := l.look(func(st *orders.State) { st.StopMeasuring() }); err != nil {
			return err
		}
	}
	return nil
}

// now is one line.
func (d *desk) now() string {
	return fmt.Sprintf("  %-14s %3d%%  orders placed %d  ended %d  kills %d", d.name, d.ended.Load()*100/int64(len(d.plan)), d.placed.Load(), d.ended.Load(), kills(d.procs))
}

// figures audits the books after all workers have ended.
func (d *desk) figures(ctx context.Context) (f SagaFigures, err error) {
	answers, err := d.app.Answers(ctx)
	if err != nil {
		return f, err
	}
	books, err := d.shop.Books(ctx)
	if err != nil {
		return f, err
	}
	f.findings(orders.Audit(d.plan, answers, &books))
	var took []time.Duration
	for _, l := range d.logs {
		err := l.look(func(st *orders.State) {
			f.Runs += st.Runs
			f.Requests += st.Requests
			f.Recognised += st.Known
			took = append(took, st.Took...)
		})
		if err != nil {
			return f, err
		}
	}
	f.Reruns = f.Runs - len(d.plan)
	f.targets(d.procs)
	f.percentiles(took)
	return f, nil
}
