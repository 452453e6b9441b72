package kafkatest

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The points of a transaction at which a member can be stopped.
const (
	inTheMiddle  = "in the middle"
	beforeCommit = "before the commit"
	afterCommit  = "after the commit"
	beforeAck    = "before the acknowledgment"
)

// gate stops a member's process at a point, the first time that it comes there,
// until a file is there.
type gate struct {
	point string
	say   func(string)
	open  string // the file
	armed atomic.Bool
	once  atomic.Bool
}

func (g *gate) reached(point string) {
	if point != g.point || !g.armed.Load() || g.once.Swap(true) {
		return
	}
	g.say("at the gate")
	for {
		if _, err := os.Stat(g.open); err == nil {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

type committing struct{}

// TraceBatchStart implements pgx.BatchTracer.
func (g *gate) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		if q.SQL == "COMMIT" {
			g.reached(beforeCommit)
			return context.WithValue(ctx, committing{}, true)
		}
	}
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (g *gate) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (g *gate) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	if ctx.Value(committing{}) != nil {
		g.reached(afterCommit)
	}
}

// TraceQueryStart implements pgx.QueryTracer.
func (g *gate) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	if strings.EqualFold(d.SQL, "commit") {
		g.reached(beforeCommit)
		return context.WithValue(ctx, committing{}, true)
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (g *gate) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(committing{}) != nil {
		g.reached(afterCommit)
	}
}

// serveBank is the process of a member that handles messages in a bank.
func (k *task) serveBank() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ledger, err := os.OpenFile(k.Ledger, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	say := func(what string) { _, _ = fmt.Fprintln(ledger, what) } // one write: appended as a whole
	g := &gate{point: k.Gate, say: say, open: k.Ledger + ".open"}
	cfg, err := pgxpool.ParseConfig(k.Bank)
	if err != nil {
		return err
	}
	cfg.ConnConfig.Tracer = g
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	b := &bank{url: k.Bank, schema: k.Schema, pool: pool}
	if b.st, err = pgstore.New(ctx, pool, &pgstore.Options{Schema: k.Schema, NoMigrate: true, Connections: 4, MaxIdleTx: idleTx}); err != nil {
		return err
	}
	defer b.close()
	gens := &generations{to: ledger}
	s, err := semelkafka.New(k.Name, []string{k.Name}, &semelkafka.Options{
		DeadLetters: k.Name + ".dead", Quarantine: k.Name + ".quarantine", CommitEvery: 100 * time.Millisecond, HandOver: 2 * time.Second, Client: k.client(gens), Outstanding: k.Outstanding,
	})
	if err != nil {
		return err
	}
	err = b.serve(ctx, k.Form, s, func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		gens.note()
		err := b.write(ctx, tx, ms)
		g.armed.Store(true)
		g.reached(inTheMiddle)
		k.dieOf(ms, say)
		return err
	}, &consume.Options{MaxAttempts: k.MaxAttempts, Observe: func(_ context.Context, e consume.Event) {
		if e.Kind == consume.EventDecided {
			g.reached(beforeAck)
			if e.Disposition.Reason != driver.ReasonDone {
				say(fmt.Sprintf("decided %s: %v", e.Disposition.Reason, e.Disposition.Err))
			}
		}
	}})
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return err
}

// client is how a child reaches the brokers.
func (k *task) client(hooks kgo.Hook) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(k.Seed), kgo.SessionTimeout(time.Second), kgo.HeartbeatInterval(100 * time.Millisecond), kgo.RebalanceTimeout(10 * time.Second),
		kgo.WithHooks(hooks), kgo.MetadataMinAge(50 * time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }),
	}
}

// noted reports whether a child's ledger says something.
func (k *task) noted(t testing.TB, what string) bool {
	t.Helper()
	text, err := os.ReadFile(k.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(text), what)
}

// openGate lets a stopped child go on.
func (k *task) openGate(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(k.Ledger+".open", nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
