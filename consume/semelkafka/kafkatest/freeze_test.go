//go:build unix

package kafkatest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store/pgstore/pgoutbox"
)

// gated starts a child that stops at a point, and waits until it is there.
func gated(t *testing.T, br *broker, b *bank, f form, point string) (*task, *proctest.Process) {
	t.Helper()
	k := &task{Seed: br.seed, Name: br.name, Ledger: filepath.Join(t.TempDir(), "ledger"), Bank: b.url, Schema: b.schema, Form: f, Gate: point}
	if err := os.WriteFile(k.Ledger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := k.spawn(t)
	until(t, point, func() bool { return k.noted(t, "at the gate") })
	return k, p
}

var points = []string{inTheMiddle, beforeCommit, afterCommit, beforeAck}

// A member is killed at each point of a transaction. The next member repeats
// messages, and each effect is there once. Without deduplication the committed
// ones are there twice.
func TestServeBatches_MemberKilled_EachEffectOnce(t *testing.T) {
	t.Parallel()
	_, seed := fake(t)
	killed(t, seed, "kfake")
}

func TestServeBatches_MemberKilledOnARealKafka_EachEffectOnce(t *testing.T) {
	t.Parallel()
	killed(t, real(t), "Apache Kafka")
}

func killed(t *testing.T, seed, where string) {
	const n = 20
	for _, f := range []form{keyed, offsets, naked} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			bad := 0
			for _, point := range points {
				br, b := open(t, seed), openBank(t)
				ms := numbered("m", n, "")
				br.to(t, 0, ms...)
				_, p := gated(t, br, b, f, point)
				p.Kill()
				b.member(t, f, br.source(t, nil), nil, nil)
				br.settled(t)
				keys, double := tally(b.effects(t))
				bad += n - keys + double
				committed := point == afterCommit || point == beforeAck
				switch {
				case keys != n:
					t.Errorf("killed %s: %d of %d messages have an effect", point, keys, n)
				case f != naked && double > 0:
					t.Errorf("killed %s: %d effects are double", point, double)
				case f == naked && (double > 0) != committed:
					t.Errorf("killed %s: without deduplication %d effects are double", point, double)
				}
			}
			if f == naked {
				report(t, figure{Claim: "without deduplication what a killed member has committed takes effect again", Where: where + ", PostgreSQL", Trials: n * len(points), Failures: bad, Control: true})
				return
			}
			report(t, figure{
				Claim: "a message is in PostgreSQL exactly once after kill -9 of its member, at named points of the transaction",
				Where: where + ", PostgreSQL", Trials: n * len(points), Failures: bad, Detail: string(f),
			})
		})
	}
}

// A member freezes in a transaction, for longer than its session and its locks
// last. Another does its work, in the order of the messages. When the first wakes,
// its statements are refused.
func TestServeBatches_MemberFrozen_IsRefused(t *testing.T) {
	t.Parallel()
	const n = 20
	for _, f := range []form{keyed, offsets} {
		for _, point := range []string{inTheMiddle, beforeCommit} {
			t.Run(fmt.Sprint(string(f), ", ", point), func(t *testing.T) {
				t.Parallel()
				_, seed := fake(t)
				freeze(t, seed, "kfake", f, point, n)
			})
		}
	}
}

func freeze(t *testing.T, seed, where string, f form, point string, n int) {
	br, b := open(t, seed), openBank(t)
	ms := numbered("m", n, "o") // by keys, messages without an order key do not wait for each other
	br.to(t, 0, ms[:n/2]...)
	zombie, p := gated(t, br, b, f, point)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	br.to(t, 0, ms[n/2:]...) // they must not overtake the first half, whose records are locked
	second := br.source(t, nil)
	stop := b.member(t, f, second, nil, nil)
	br.settled(t)
	if got := b.effects(t); !slices.Equal(got, bodies(ms...)) {
		t.Errorf("while it is frozen the effects are %q", got)
	}
	zombie.openGate(t)
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	refusals := []driver.Reason{driver.ReasonLeaseLost, driver.ReasonUnavailable, driver.ReasonError}
	if f == keyed { // it looks again at once, and finds what the other has done
		refusals = append(refusals, driver.ReasonDuplicate)
	}
	until(t, "refused", func() bool {
		return slices.ContainsFunc(refusals, func(r driver.Reason) bool { return zombie.noted(t, "decided "+string(r)) })
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	more := numbered("later", n, "")
	br.to(t, 1, more...) // it is a member again, and does what is left
	br.settled(t)
	keys, double := tally(b.effects(t))
	if keys != 2*n || double > 0 {
		t.Errorf("%d of %d messages have an effect, %d are double", keys, 2*n, double)
	}
	report(t, figure{
		Claim: "a member that froze in its transaction, and wakes when another has done the work, is refused, and nothing is double",
		Where: where + ", PostgreSQL", Trials: 2 * n, Failures: 2*n - keys + double, Detail: string(f) + ", frozen " + point,
	})
}

// Publishers are killed, and frozen past their leases, while transactions write messages
// of several accounts into PostgreSQL. Every message arrives in Kafka, the first copies
// of each account in the order of the commits, and a consumer handles each once.
func TestOutbox_PublishersKilledAndFrozen_NothingLostOrReordered(t *testing.T) {
	kills, span := 6, 5*time.Second
	switch {
	case os.Getenv("SEMEL_EVIDENCE") != "":
		kills, span = 150, 4*time.Minute
	case testing.Short():
		kills, span = 3, 2*time.Second
	}
	b := openBank(t)
	_, seed := fake(t)
	topic := open(t, seed)
	box, err := pgoutbox.New(b.st, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	a := &accounts{pool: b.pool, box: box, topic: topic.name, table: pgx.Identifier{b.schema, "account"}.Sanitize()}
	if _, err := b.pool.Exec(t.Context(), "CREATE TABLE "+a.table+" AS SELECT 'account' || i AS name, 0 AS n FROM generate_series(0, 7) AS i"); err != nil {
		t.Fatal(err)
	}
	writing, stopWriting := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for writing.Err() == nil {
				if err := a.write(t.Context(), fmt.Sprint("account", rand.IntN(8))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	k := &task{Publisher: true, Seed: seed, Bank: b.url, Schema: b.schema}
	publishers := []*proctest.Process{k.spawn(t), k.spawn(t)}
	frozen := 0
	for n := range kills {
		<-time.After(span / time.Duration(kills))
		i := n % len(publishers)
		if n%3 == 2 { // frozen past its lease, then woken
			p := publishers[i]
			if err := p.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			<-time.After(1500 * time.Millisecond)
			if err := p.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			frozen++
			continue
		}
		publishers[i].Kill()
		publishers[i] = k.spawn(t)
	}
	stopWriting()
	writers.Wait()
	until(t, "the outbox empty", func() bool {
		s, err := box.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s == (outbox.Stats{})
	})
	for _, p := range publishers {
		p.End(syscall.SIGTERM, 20*time.Second)
	}
	copies, firsts := topic.ordered(t)
	if firsts != int(a.total.Load()) {
		t.Errorf("%d messages arrived, want %d", firsts, a.total.Load())
	}
	topic.handleOnce(t, copies, firsts)
	report(t, figure{
		Claim: "a message of an outbox whose publishers are killed and frozen is in Kafka, its first copy in the order of the commits of its key, and a consumer handles it once",
		Where: "kfake, PostgreSQL", Trials: int(a.total.Load()), Failures: int(a.total.Load()) - firsts,
		Detail: fmt.Sprintf("%d records; %d publishers killed -9, %d frozen past their leases", copies, kills-frozen, frozen),
	})
}
