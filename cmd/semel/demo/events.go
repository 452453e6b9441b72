package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/consumer"
	"github.com/semel-go/semel/cmd/semel/demo/internal/journal"
	"github.com/semel-go/semel/cmd/semel/demo/internal/pipeline"
	"github.com/semel-go/semel/cmd/semel/demo/internal/proc"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
)

// consumers is how many processes share the orders.
const consumers = 3

// eventWork is how long a charge takes in the event demo. With Semel it holds
// SQLite's write lock all the time.
const eventWork = 2 * time.Millisecond

// ackWait is short, so that the messages of a killed consumer come again soon. In production it would be the default, 30 s.
const ackWait = time.Second

// patientLooks is how many looks a kill waits for a handler of Semel's.
const patientLooks = 5

// stream is one of the two ways to consume: as it is often written, or with
// Semel.
type stream struct {
	name  string
	semel bool
	plan  *pipeline.Plan

	broker    *pipeline.Broker
	producers *pipeline.Producers
	book      *sql.DB
	path      string // of the book
	targets   []*target
	logs      []*log[consumer.State]
}

// openStream starts a broker, its consumers, and makes producers. Close it.
func openStream(ctx context.Context, g *proc.Group, o *Options, plan *pipeline.Plan, dir string, semel bool) (_ *stream, err error) {
	s := &stream{name: "without Semel", semel: semel, plan: plan}
	short := "without"
	if semel {
		s.name, short = "with Semel", "with"
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.path = filepath.Join(dir, short+".db")
	if s.book, err = consumer.OpenBook(ctx, s.path); err != nil {
		return nil, err
	}
	if s.broker, err = pipeline.Start(ctx, filepath.Join(dir, short+"-nats"), ackWait); err != nil {
		return nil, err
	}
	s.producers = pipeline.NewProducers(plan, s.broker)
	for i := range consumers {
		name := fmt.Sprintf("%s-consumer-%d", short, i+1)
		path := filepath.Join(dir, name+".journal")
		p, err := g.Start(name, o.Program, s.consumerArgs(o, path)...)
		if err != nil {
			return nil, err
		}
		st := consumer.NewState()
		l := &log[consumer.State]{state: st, update: journal.NewTail(path, st.Apply).Update}
		s.logs, s.targets = append(s.logs, l), append(s.targets, newConsumer(p, fmt.Sprint("consumer ", i+1), l, semel))
	}
	for _, t := range s.targets {
		if err := t.ready(ctx); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *stream) consumerArgs(o *Options, path string) []string {
	args := []string{roleConsumer, "--broker=" + s.broker.URL, "--database=" + s.path, "--journal=" + path, "--work=" + eventWork.String()}
	if s.semel {
		args = append(args, "--semel")
	}
	if o.BrokerKeys {
		args = append(args, "--broker-keys")
	}
	return args
}

// newConsumer is a consumer as a target: ready when it has begun once more than
// it was killed, and worth a kill when a handler is at work. With Semel only
// one of all consumers' is at a time, because it holds SQLite's write lock, so a
// consumer which only has messages will do after some looks.
func newConsumer(p *proc.Process, title string, l *log[consumer.State], semel bool) *target {
	t := &target{Process: p, title: title}
	t.boots(func() (boots int, _ error) {
		err := l.look(func(st *consumer.State) { boots = st.Boots })
		return boots, err
	})
	looks := 0
	t.inFlight = func() (n int, _ error) {
		err := l.look(func(st *consumer.State) {
			all, atWork := st.InFlight()
			if looks++; atWork > 0 || semel && looks > patientLooks {
				n = all
			}
		})
		if n > 0 {
			looks = 0
		}
		return n, err
	}
	return t
}

// run lets the producers loose, and the storm, and counts.
func (s *stream) run(ctx context.Context, o *Options, stderr io.Writer) (_ Figures, err error) {
	defer func() { err = errors.Join(err, s.close()) }()
	st := &storm{
		targets: s.targets, steps: int64(s.plan.Messages), done: s.producers.Settled.Load, disturb: s.disturb, hold: s.producers.Hold,
	}
	err = perform(ctx, o, &act{
		storm: st,
		kills: o.Kills, hope: 4, now: func() string { return s.now(ctx) },
		work: func(ctx context.Context) error { return s.producers.Run(ctx, o.Clients) },
	}, stderr)
	if err != nil {
		return Figures{}, err
	}
	for _, t := range s.targets {
		t.Stop(10 * time.Second)
	}
	f, err := s.figures(ctx)
	f.Timeline = st.kills
	return f, err
}

// disturb ends the measurement of latencies before the first kill. A message
// that is under way by then can wait for a killed consumer, so its latency must
// not count either.
func (s *stream) disturb() error {
	if s.producers.Disturbed.Swap(true) {
		return nil
	}
	for _, l := range s.logs {
		if err := l.look(func(st *consumer.State) { st.StopMeasuring() }); err != nil {
			return err
		}
	}
	return nil
}

// close ends the broker, after those who are connected to it.
func (s *stream) close() (err error) {
	for _, t := range s.targets {
		t.Stop(0)
	}
	if s.broker != nil {
		s.broker.Close()
	}
	if s.book != nil {
		err = s.book.Close()
	}
	return err
}

// now is one line.
func (s *stream) now(ctx context.Context) string {
	text := fmt.Sprintf("  %-14s %3d%%  messages %d", s.name, s.producers.Settled.Load()*100/int64(s.plan.Messages), s.producers.Sent.Load())
	var charged, orders int
	if err := s.book.QueryRowContext(context.WithoutCancel(ctx), "SELECT count(*), count(DISTINCT order_id) FROM charge").Scan(&charged, &orders); err != nil {
		return text + "  " + err.Error()
	}
	return text + fmt.Sprintf("  charges %d  double charges %d  kills %d", charged, charged-orders, kills(s.targets))
}

func (s *stream) figures(ctx context.Context) (f Figures, err error) {
	var all evidence
	if all.charges, err = consumer.Charges(ctx, s.book); err != nil {
		return f, err
	}
	if all.letters, err = s.broker.Letters(ctx); err != nil {
		return f, err
	}
	if s.semel {
		url, err := storeurl.Parse("sqlite:"+s.path, "the demo's store")
		if err != nil {
			return f, err
		}
		done, err := completed(ctx, url)
		if err != nil {
			return f, err
		}
		all.completed = map[string]bool{}
		for id := range done {
			all.completed[id.Key] = true
		}
	}
	for _, l := range s.logs {
		if err := l.look(func(st *consumer.State) { all.states = append(all.states, st) }); err != nil {
			return f, err
		}
	}
	b, err := s.broker.Backlog(ctx)
	if err != nil {
		return f, err
	}
	f = countEvents(s.plan, &all)
	f.Stuck += b.Unsettled
	f.Sent = int(s.producers.Sent.Load())
	f.Duplicates = f.Sent - len(s.plan.Orders)
	f.targets(s.targets)
	f.ConsumerKills = f.Kills
	return f, nil
}
