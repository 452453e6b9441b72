package failover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/test/internal/figure"
)

// deadlines of callers. The long ones are for the evidence only.
var deadlines = []time.Duration{10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second}

// interference is who ends the waits for the standby, besides the deadlines.
type interference int

const (
	deadlinesOnly interference = iota
	connectionResets
	operatorCancels
	interferences
)

func TestFailover_StandbyCutOff_AcknowledgedOutcomesKept(t *testing.T) {
	rounds := 3
	if figure.Long() {
		rounds = 300
	}
	c, o := newCluster(t), newOracle()
	wrong, told := 0, 0
	for round := range rounds {
		before := len(o.wrong)
		failOverOnce(t, c, o, round)
		if len(o.wrong) > before {
			wrong++
			for _, w := range o.wrong[before:] {
				t.Error(w)
			}
		}
		if round%25 == 24 {
			t.Logf("%d rounds, %d of them wrong", round+1, wrong)
		}
	}
	if told = o.acks; told < 5*rounds { // most of the ten forms, before the standby is cut off
		t.Errorf("only %d calls were acknowledged in %d rounds", told, rounds)
	}
	figure.Report(t, figure.Figure{
		Claim: "after the primary was killed and its synchronous standby promoted, no acknowledged outcome is lost, and under park and Atomic no effect happens twice",
		Where: "pgstore", Trials: int64(rounds), Failures: int64(wrong),
		Detail: fmt.Sprintf("%d answers that a key is done, %d keys", told, len(o.told)),
	})
}

// failOverOnce cuts the standby off, lets calls run into it, and fails over.
func failOverOnce(t *testing.T, c *cluster, o *oracle, round int) {
	t.Helper()
	c.addStandby(t)
	a := newApplication(t, c.url(), o, []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second}[round%3])
	defer a.close()
	key := func(n int) string { return fmt.Sprintf("round %d, key %d", round, n) }
	for _, f := range a.forms {
		_ = o.callOnce(t.Context(), limit, &f, key(0)) // the standby is there, but a busy machine may settle too late
	}
	readers := a.readers(round)
	for _, r := range readers {
		if err := r.step(t.Context()); err != nil {
			t.Errorf("%s: %v", r.name(0), err)
		}
	}

	c.replication.freeze()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cut := time.Duration(200+rand.IntN(400)) * time.Millisecond
	longest := 4
	if figure.Long() && round%20 == 0 {
		cut, longest = time.Duration(3+rand.IntN(9))*time.Second, len(deadlines)
	}
	var all sync.WaitGroup
	for _, f := range a.forms {
		for n := 1; n <= 2; n++ {
			all.Go(func() {
				for range 4 { // a caller that was told nothing calls again
					_ = o.callOnce(ctx, deadlines[rand.IntN(longest)], &f, key(n))
				}
			})
		}
	}
	for _, r := range readers {
		all.Go(func() {
			for range 6 {
				short, cancel := context.WithTimeout(ctx, deadlines[rand.IntN(longest)])
				_ = r.step(short)
				cancel()
			}
		})
	}
	interfere(t, c, interference(round)%interferences, cut)
	c.failOver(t)
	calls := make(chan struct{})
	go func() { all.Wait(); close(calls) }()
	select {
	case <-calls:
	case <-time.After(limit):
		t.Error("the calls do not end")
		stop()
		<-calls
	}
	judge(t, c, a, o, round, key)
	for _, r := range readers {
		r.watermark = nil
		end := time.Now().Add(limit)
		for target := int64(8); r.watermark == nil || r.watermark.Next() < target; {
			err := r.step(t.Context()) // fails while the pool has connections to the old primary
			if err != nil && time.Now().After(end) {
				t.Errorf("%s, %v after the failover: %v", r.name(0), limit, err)
				break
			}
		}
	}
	o.checkEffects(t, c)
}

// callOnce calls a form once, and notes what the caller was told.
func (o *oracle) callOnce(ctx context.Context, deadline time.Duration, f *form, key string) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	value, err := f.call(ctx, key)
	if err == nil {
		o.acknowledge(f.name+" "+key, value)
	}
	return err
}

// interfere ends waits for the standby for as long as the cut lasts.
func interfere(t *testing.T, c *cluster, by interference, cut time.Duration) {
	t.Helper()
	end := time.Now().Add(cut)
	for time.Now().Before(end) {
		<-time.After(time.Duration(20+rand.IntN(60)) * time.Millisecond)
		switch by {
		case connectionResets:
			c.clients.reset()
		case operatorCancels:
			ask[int](t, c.primary, "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
		case deadlinesOnly, interferences:
		}
	}
}

// judge calls all keys again on the new primary.
func judge(t *testing.T, c *cluster, a *application, o *oracle, round int, key func(int) string) {
	t.Helper()
	_ = c
	var all sync.WaitGroup
	for _, f := range a.forms {
		for n := range 3 {
			all.Go(func() {
				name := f.name + " " + key(n)
				o.mu.Lock()
				told, wasTold := o.told[name]
				runs := o.runs[name]
				o.mu.Unlock()
				end := time.Now().Add(limit) // of a busy machine; the lease of a lost worker is over much earlier
				err := o.callOnce(t.Context(), limit, &f, key(n))
				for err != nil && time.Now().Before(end) {
					<-time.After(lease / 10)
					if err = o.callOnce(t.Context(), limit, &f, key(n)); isParked(err) {
						break
					}
				}
				o.mu.Lock()
				again := o.runs[name] - runs
				o.mu.Unlock()
				if wasTold && (err != nil || again > 0) {
					o.errorf("round %d: %s: a caller was told %q; after the failover the handler ran %d times more, error %v", round, name, told, again, err)
				}
				if f.once && !f.inDatabase && runs+again > 1 {
					o.errorf("round %d: %s took effect %d times", round, name, runs+again)
				}
				if !wasTold && err != nil && f.inDatabase {
					o.errorf("round %d: %s cannot be done after the failover: %v", round, name, err)
				}
			})
		}
	}
	all.Wait()
}

func isParked(err error) bool { return err != nil && strings.Contains(err.Error(), "parked") }

// checkEffects compares the rows with what callers were told.
func (o *oracle) checkEffects(t *testing.T, c *cluster) {
	t.Helper()
	type row struct {
		Name  string
		Count int
		Value string
	}
	effects := map[string]row{}
	on(t, c.primary, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT name, count(*), max(value) FROM "+effectTable+" GROUP BY name")
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		for _, r := range all {
			effects[r.Name] = r
		}
		return err
	})
	for name, r := range effects {
		if r.Count != 1 {
			o.errorf("%s took effect %d times", name, r.Count)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, value := range o.told {
		if strings.HasPrefix(name, "leased") {
			continue
		}
		if r := effects[name]; r.Count == 0 || value != "" && r.Value != value {
			o.wrong = append(o.wrong, fmt.Sprintf("%s: a caller was told %q; there are %d effects, of %q", name, value, r.Count, r.Value))
		}
	}
}

// A caller that takes a plain read for the confirmation of a write is told of outcomes
// that the failover loses. So the rounds are hard enough.
func TestFailover_PlainReadConfirms_Loses(t *testing.T) {
	c := newCluster(t)
	exec(t, c.primary, "CREATE TABLE plain (key int)")
	rounds, lost := 1, 0
	if figure.Long() {
		rounds = 10
	}
	for round := range rounds {
		c.addStandby(t)
		c.replication.freeze()
		pool := plainPool(t, c.url())
		told := map[int]bool{}
		for key := round * 10; key < round*10+10; key++ {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			_, err := pool.Exec(ctx, "INSERT INTO plain VALUES ($1)", key)
			cancel()
			if err != nil {
				wait(t, "the row is visible, or never written", func() bool {
					n := 0
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					err = pool.QueryRow(ctx, "SELECT count(*) FROM plain WHERE key = $1", key).Scan(&n)
					told[key] = n > 0
					return err == nil && ask[int](t, c.primary, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == 0
				})
			}
		}
		pool.Close()
		c.failOver(t)
		for key, is := range told {
			if is && ask[int](t, c.primary, fmt.Sprintf("SELECT count(*) FROM plain WHERE key = %d", key)) == 0 {
				lost++
				break
			}
		}
	}
	if lost == 0 {
		t.Error("no round has lost anything")
	}
	figure.Report(t, figure.Figure{Claim: "a caller that takes a plain read for a confirmation loses acknowledged rows", Where: "PostgreSQL", Trials: int64(rounds), Failures: int64(lost), Control: true})
}
