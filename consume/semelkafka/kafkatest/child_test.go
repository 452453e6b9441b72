package kafkatest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/store/sqlitestore"
	"github.com/twmb/franz-go/pkg/kgo"
)

// task is what a child process is to do: to be a member of a group.
type task struct {
	Seed   string
	Name   string // of the topic and the group
	Store  string // the file of the store
	Ledger string // the file in which effects are noted
	Dedup  bool

	// Of a member that handles messages in a bank.
	Bank, Schema string
	Form         form
	Gate         string // where it stops
	Deadly       string // the message that it does not survive
	Exits        bool   // of that, by os.Exit and not by a signal
	MaxAttempts  int
	Outstanding  int // 0: the default

	Fake int // the port of the kfake that it is, and nothing else

	Publisher bool // it publishes the outbox of the bank
}

const taskVariable = "SEMEL_KAFKATEST_CHILD"

// child is the process of a member; false: this is the parent.
func child() bool {
	text := os.Getenv(taskVariable)
	if text == "" {
		return false
	}
	var k task
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		panic(err)
	}
	serve := k.serve
	switch {
	case k.Publisher:
		serve = k.publish
	case k.Bank != "":
		serve = k.serveBank
	case k.Fake != 0:
		serve = k.serveFake
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func (k *task) serve() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	st, err := sqlitestore.Open(ctx, k.Store, &sqlitestore.Options{Relaxed: true, BusyTimeout: 30 * time.Second})
	if err != nil {
		return err
	}
	g, err := semel.New(st, &semel.Options{Retention: consume.DefaultRetention, Lease: 2 * time.Second})
	if err != nil {
		return err
	}
	ledger, err := os.OpenFile(k.Ledger, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	gens := &generations{to: ledger}
	source, err := semelkafka.New(k.Name, []string{k.Name}, &semelkafka.Options{
		DeadLetters: k.Name + ".dead", Quarantine: k.Name + ".quarantine", CommitEvery: 100 * time.Millisecond, HandOver: 2 * time.Second,
		Client: k.client(gens),
	})
	if err != nil {
		return err
	}
	keys := consume.Keyed("soak", consume.FromHeader(consume.KeyHeader))
	if !k.Dedup {
		keys = consume.Keyed("soak", consume.Unprotected())
	}
	c, err := consume.New(g, keys, func(_ context.Context, x *semel.Execution, m *consume.Message) error {
		gens.note()
		_, err := fmt.Fprintf(ledger, "%s %s\n", m.Body, x.DownstreamKey("effect")) // one write: appended as a whole
		return err
	}, &consume.Options{AllowShortRetention: true, Concurrency: 32})
	if err != nil {
		return err
	}
	err = c.Serve(ctx, source)
	if stats := source.Stats(); err == nil && len(stats.Partitions) > 0 {
		for _, p := range stats.Partitions {
			if p.Unfinished > 0 {
				err = fmt.Errorf("partition %d has %d messages in work after Serve", p.Partition, p.Unfinished)
			}
		}
	}
	if cerr := source.Close(); err == nil {
		err = cerr
	}
	if cerr := st.Close(); err == nil {
		err = cerr
	}
	return err
}

// generations notes in the ledger which generations of the group a member saw.
type generations struct {
	to   *os.File
	cl   atomic.Pointer[kgo.Client]
	last atomic.Int32
}

// OnNewClient implements kgo.HookNewClient.
func (g *generations) OnNewClient(cl *kgo.Client) { g.cl.Store(cl) }

func (g *generations) note() {
	if _, now := g.cl.Load().GroupMetadata(); g.last.Swap(now) != now {
		_, _ = fmt.Fprintf(g.to, "generation %d\n", now)
	}
}

// spawn starts a child, which is killed when t ends.
func (k *task) spawn(t testing.TB) *proctest.Process {
	t.Helper()
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	cmd := proctest.Self(t, taskVariable+"="+string(text))
	cmd.Stdout = os.Stderr
	return proctest.Run(t, cmd)
}
