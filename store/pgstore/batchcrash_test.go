package pgstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// The business rows of batches are there exactly once, whenever the server
// dies.
func TestRunBatch_ServerKilled_EffectsOnce(t *testing.T) {
	t.Parallel()
	srv := pgtest.Start(t, pgtest.Durable...)
	p := newShop(t, openAt(t, srv.URL(), nil), nil)
	n := kills()
	var confirmed, resent atomic.Int64
	for round := range n {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for g := range 6 {
			all.Go(func() {
				w := newWorker(p)
				run := []func(context.Context, []semel.Call) []BatchResult{w.runAll, w.prefetched}[g%2]
				for i := 0; ctx.Err() == nil; i++ {
					calls := poll(numbered(fmt.Sprint(round, "/", g, "/", i, "/"), 30)...)
					resent.Add(int64(settleAll(t, ctx, run, calls)) - 1)
					if ctx.Err() == nil {
						confirmed.Add(int64(len(calls)))
					}
				}
			})
		}
		grow := func(n int64) {
			from := confirmed.Load()
			waitFor(t, "batches are confirmed", func() bool { return confirmed.Load() >= from+n })
		}
		grow(600)
		srv.Kill()
		if err := srv.Start(); err != nil {
			t.Fatal(err)
		}
		grow(120)
		cancel()
		all.Wait()
	}
	rows, keys, records := p.count(t, srv.URL())
	writeEvidence(t, "an effect of a batch is there exactly once after kill -9 of the server", false, confirmed.Load(), rows-keys+max(0, confirmed.Load()-rows),
		fmt.Sprintf("%d kills, %d rows, %d batches sent again", n, rows, resent.Load()))
	if rows != keys || rows != records || rows < confirmed.Load() {
		t.Errorf("%d confirmed, %d rows of %d keys, %d records", confirmed.Load(), rows, keys, records)
	}
}

// stopAt makes a worker stop for good at a point of its batch, and say so.
type stopAt struct{ point string }

func (s *stopAt) reached(point string) {
	if point == s.point {
		fmt.Println("stopped")
		select {} // until it is killed
	}
}

func (s *stopAt) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		if q.SQL == "COMMIT" {
			s.reached("before the commit")
			ctx = context.WithValue(ctx, stopAt{}, true)
		}
	}
	return ctx
}

func (*stopAt) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (s *stopAt) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	if ctx.Value(stopAt{}) != nil {
		s.reached("after the commit")
	}
	s.reached("after the claim")
}

// TestRunBatch_WorkerProcess is what the killed processes run. It is not a test by
// itself.
func TestRunBatch_WorkerProcess(t *testing.T) {
	url, schema, point, form := os.Getenv("SEMEL_TEST_WORKER_URL"), os.Getenv("SEMEL_TEST_WORKER_SCHEMA"), os.Getenv("SEMEL_TEST_WORKER_STOP"), os.Getenv("SEMEL_TEST_WORKER_FORM")
	if url == "" {
		t.Skip("a process that another test starts")
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	stop := &stopAt{point}
	cfg.ConnConfig.Tracer = stop
	app, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), app, &Options{Schema: schema, NoMigrate: true})
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewAtomic(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	table := pgx.Identifier{schema, "payment"}.Sanitize()
	insert := func(ctx context.Context, key string) error {
		tx, _ := TxFrom(ctx)
		_, err := tx.Exec(ctx, "INSERT INTO "+table+" VALUES ($1)", key)
		return err
	}
	calls := poll(numbered("k", 20)...)
	whole := func(ctx context.Context, newCalls []*PendingCall) error {
		for i, f := range newCalls {
			if i == 10 {
				stop.reached("in the middle")
			}
			if err := insert(ctx, f.Execution.Key()); err != nil {
				return err
			}
		}
		return nil
	}
	switch form {
	case "ahead":
		q := a.Prefetcher()
		n, behind := q.Prefetch(t.Context(), calls), q.Prefetch(t.Context(), poll(numbered("l", 20)...))
		n.Run(t.Context(), func(ctx context.Context, newCalls []*PendingCall) error {
			if !behind.waitPrefetched() {
				t.Error("there was no look ahead")
			}
			return whole(ctx, newCalls)
		})
	default:
		a.RunBatch(t.Context(), calls, whole)
	}
	stop.reached("before the acknowledgment")
	t.Error("it was not stopped")
}

// A worker is killed at each point of a batch. The next worker runs the batch again,
// and each effect exists once.
func TestRunBatch_WorkerKilled_EffectsOnce(t *testing.T) {
	t.Parallel()
	first := openNew(t, nil)
	trials, twice := int64(0), int64(0)
	for _, form := range []string{"whole", "ahead"} {
		for _, point := range []string{"after the claim", "in the middle", "before the commit", "after the commit", "before the acknowledgment"} {
			o := first.options
			o.Schema = newSchema(t, pgtest.URL(t))
			p := newShop(t, openAt(t, pgtest.URL(t), &o), nil)
			killAt(t, p, point, form)
			w := newWorker(p)
			want := numbered("k", 20)
			if form == "ahead" { // and the batch that was looked for
				want = append(want, numbered("l", 20)...)
			}
			settleAll(t, t.Context(), w.runAll, poll(want...))
			got := p.payments(t)
			trials += int64(len(want))
			twice += int64(len(got) - len(want))
			if !slices.Equal(got, want) {
				t.Errorf("%s, killed %s: %d effects of %d: %q", form, point, len(got), len(want), got)
			}
			committed := strings.HasSuffix(point, "after the commit") || strings.HasSuffix(point, "acknowledgment")
			if ran := w.runs["k000"] > 0; ran == committed {
				t.Errorf("%s, killed %s: the next worker's handlers ran: %v", form, point, ran)
			}
		}
	}
	writeEvidence(t, "an effect of a batch is there exactly once after kill -9 of its worker, at named points", false, trials, twice, "10 kills")
}

// killAt kills a worker of the shop's batch at a point.
func killAt(t *testing.T, p *shop, point, form string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestRunBatch_WorkerProcess$")
	cmd.Env = append(os.Environ(), "SEMEL_TEST_WORKER_URL="+pgtest.URL(t), "SEMEL_TEST_WORKER_SCHEMA="+p.s.options.Schema,
		"SEMEL_TEST_WORKER_STOP="+point, "SEMEL_TEST_WORKER_FORM="+form)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "stopped\n" {
		t.Errorf("a worker to be killed %s said %q, %v", point, line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if e, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || e.ProcessState.ExitCode() == 0 {
		t.Errorf("it ended by itself: %v", e)
	}
}

func (*stopAt) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (*stopAt) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
