//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
)

// task is what a child process does.
type task struct {
	Kafka, Postgres string
	Command         string // of the example, or "broker"
	Form            form   // of a service
	Deadly          int    // one in so many named points of a service kills it; 0: none
	Port            int    // of a broker
	Dir             string // of a broker
}

// form is how a service handles an event. All but the example's are naive.
type form string

const (
	example         form = "example"
	noDeduplication form = "no deduplication"
	afterCommit     form = "publish after commit"
	beforeCommit    form = "publish before commit"
)

const childVariable = "SEMEL_SAGA_KAFKA_CHILD"

// The time after which another process takes the work of a dead one over.
const (
	testLease   = 3 * time.Second
	testSession = 5 * time.Second
)

// child is the process of a task; false: this is the parent.
func child() bool {
	text := os.Getenv(childVariable)
	if text == "" {
		return false
	}
	var k task
	err := json.Unmarshal([]byte(text), &k)
	if err == nil {
		err = k.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, k.Command+":", err)
		os.Exit(1)
	}
	return true
}

// spawn starts the process of a task.
func (k *task) spawn(t *testing.T) (*proctest.Process, error) {
	text, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	return proctest.Start(proctest.Self(t, childVariable+"="+string(text)))
}

func (k *task) config() *config {
	return &config{kafka: k.Kafka, postgres: k.Postgres, lease: testLease, session: testSession}
}

func (k *task) run() error {
	slog.SetLogLoggerLevel(slog.LevelError) // a lane that is lost is no news here
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if k.Command == "broker" {
		_, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(k.Port), kfake.DataDir(k.Dir), kfake.GroupMinSessionTimeout(100*time.Millisecond))
		if err == nil {
			<-ctx.Done()
		}
		return err
	}
	name, serves := strings.CutPrefix(k.Command, "serve ")
	if !serves {
		return k.config().run(ctx, k.Command)
	}
	if err := k.serve(ctx, services[name]); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// serve is config.serve in one of the forms, in a process that dies at named points.
func (k *task) serve(ctx context.Context, s *service) error {
	c := k.config()
	d, err := c.open(ctx, s)
	if err != nil {
		return err
	}
	defer d.close()
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Kafka), kgo.ProducerLinger(0))
	if err != nil {
		return err
	}
	defer client.Close()
	n := &naive{d, client, k.Form}
	run := &mortal{d.once, k.Deadly, nil}
	keys, handle := consume.Keyed(s.name, consume.FromHeader(consume.KeyHeader)), d.handle
	switch k.Form {
	case noDeduplication:
		keys = consume.Keyed(s.name, consume.Unprotected())
	case afterCommit:
		handle, run.committed = n.handle, n.send
	case beforeCommit:
		handle = n.handle
	}
	return c.consume(ctx, s, run, keys, handle)
}

// aborts is in how many transactions one is rolled back, as a server does after a deadlock.
const aborts = 20

var errAborted = errors.New("the transaction is rolled back")

// mortal runs calls in transactions. It rolls some of them back, and kills its process just
// before a commit or just after it.
type mortal struct {
	*pgstore.Atomic
	deadly    int
	committed func(ctx context.Context, u *unsent) error
}

// unsent is an event that the handler leaves to be published after the commit.
type unsent struct {
	event *event
	key   string
}

type unsentKey struct{}

// Run implements semel.Runner.
func (r *mortal) Run(ctx context.Context, call semel.Call, fn semel.Handler) (semel.Result, error) {
	var u unsent
	res, err := r.Atomic.Run(context.WithValue(ctx, unsentKey{}, &u), call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		out, err := fn(ctx, x)
		r.perhapsDie()
		if err == nil && rand.IntN(aborts) == 0 {
			err = errAborted
		}
		return out, err
	})
	if err == nil {
		r.perhapsDie()
		if u.event != nil && r.committed != nil {
			err = r.committed(ctx, &u)
		}
	}
	return res, err
}

func (r *mortal) perhapsDie() {
	if r.deadly > 0 && rand.IntN(r.deadly) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal has arrived
	}
}

// naive publishes events without an outbox.
type naive struct {
	*database
	client *kgo.Client
	form   form
}

// handle publishes the event that follows before the commit, or leaves it for later.
func (n *naive) handle(ctx context.Context, x *semel.Execution, m *consume.Message) error {
	tx, ok := pgstore.TxFrom(ctx)
	if !ok {
		return errors.New("an event needs a transaction")
	}
	e, err := n.change(ctx, tx, m)
	if err != nil || e == nil {
		return err
	}
	if err := remember(ctx, tx, e); err != nil {
		return err
	}
	u := &unsent{e, x.DownstreamKey("event")}
	if n.form == beforeCommit {
		return n.send(ctx, u)
	}
	*ctx.Value(unsentKey{}).(*unsent) = *u
	return nil
}

func (n *naive) send(ctx context.Context, u *unsent) error {
	body, err := json.Marshal(u.event)
	if err != nil {
		return err
	}
	r := &kgo.Record{Topic: n.name, Key: []byte(u.event.Customer), Value: body}
	return n.client.ProduceSync(ctx, semelkafka.Keyed(r, u.key)).FirstErr()
}
