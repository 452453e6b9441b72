//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/outbox"
)

// size is how large a campaign is.
type size struct {
	orders, customers int
	members           int // processes of each service, and of each publisher
	faults            int // at least; kills, freezes and restarts of the broker
	every             time.Duration
	deadly            int
	patience          time.Duration // for the end
}

func sizeOf(long bool) size {
	switch {
	case long:
		return size{orders: 20_000, customers: 400, members: 2, faults: 160, every: 2 * time.Second, deadly: 2000, patience: 40 * time.Minute}
	case testing.Short():
		return size{orders: 100, customers: 20, members: 1, faults: 6, every: 300 * time.Millisecond, deadly: 300, patience: 5 * time.Minute}
	}
	return size{orders: 500, customers: 50, members: 2, faults: 20, every: 400 * time.Millisecond, deadly: 300, patience: 10 * time.Minute}
}

// figure is a line for docs/evidence.md.
type figure struct {
	Claim    string `json:"claim"`
	Where    string `json:"where"`
	Trials   int    `json:"trials"`
	Failures int    `json:"failures"`
	Control  bool   `json:"control"`
	Detail   string `json:"detail"`
}

func report(t *testing.T, f figure) {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("evidence: %s", text)
}

// campaign is orders that are placed and handled while processes fail.
type campaign struct {
	size
	c      *config
	broker *broker
	fleet  *fleet
	detail string
}

// run places orders, lets processes fail, waits until all is quiet, and audits.
func run(t *testing.T, apache bool, f form, s size) (*campaign, *audit) {
	t.Helper()
	b := startBroker(t, apache)
	k := task{Kafka: b.addr(), Postgres: startPostgres(t) + "&pool_max_conns=8", Form: f, Deadly: s.deadly}
	p := &campaign{size: s, c: k.config(), broker: b}
	p.prepare(t)
	began := time.Now()
	p.fleet = startFleet(t, k, s.members)
	var placing sync.WaitGroup
	var placed atomic.Int64
	orders := openService(t, p.c, "orders")
	for worker := range 4 {
		placing.Go(func() {
			for i := worker; i < s.orders; i += 4 {
				for range 1 + i%3/2 { // every third client gets no answer, and places its order again
					if err := orders.place(t.Context(), order(i, s.customers)); err != nil {
						t.Error(err)
						return
					}
				}
				placed.Add(1)
			}
		})
	}
	restarts := 0
	for n := 1; n <= s.faults || int(placed.Load()) < s.orders && !t.Failed(); n++ {
		<-time.After(s.every)
		switch {
		case n%10 == 3:
			restarts++
			if err := b.restart(); err != nil {
				t.Fatal(err)
			}
		case n%4 == 1:
			p.fleet.freeze()
		default:
			p.fleet.kill()
		}
	}
	placing.Wait()
	p.fleet.calm()
	p.settle(t)
	p.fleet.end()
	p.detail = fmt.Sprintf("%d processes killed by the test and %d at named points, %d frozen past their leases, %d kills of the broker; %d ended because it was away; %v",
		p.fleet.kills.Load(), p.fleet.deaths.Load(), p.fleet.freezes.Load(), restarts, p.fleet.failures.Load(), time.Since(began).Round(time.Second))
	a := judge(t, p.c, b, s.orders, s.customers)
	t.Logf("%s: %s", f, a)
	t.Log(p.detail)
	return p, a
}

// prepare makes topics and databases, accounts and items.
func (p *campaign) prepare(t *testing.T) {
	t.Helper()
	if err := p.c.setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := openService(t, p.c, "payments").pool.Exec(t.Context(), "INSERT INTO account SELECT 'customer' || i, $1 FROM generate_series(0, $2::int - 1) AS i", firstCents, p.customers)
	if err == nil {
		_, err = openService(t, p.c, "stock").pool.Exec(t.Context(), "INSERT INTO item SELECT 'item' || i, $1 FROM generate_series(0, $2::int - 1) AS i", unitsPerItem, p.orders/ordersPerItem)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// settle waits until every message is handled, and every outbox is empty.
func (p *campaign) settle(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var boxes []*database
	for name := range services {
		boxes = append(boxes, openService(t, p.c, name))
	}
	told, moved, last := time.Now(), time.Now(), ""
	for began := time.Now(); ; <-tick.C {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		quiet, state := p.quiet(ctx, boxes)
		cancel()
		if quiet {
			return
		}
		if state != last {
			moved, last = time.Now(), state
		}
		if p.broker.where == "kfake" && time.Since(moved) > 4*testSession {
			moved = time.Now()
			for _, d := range boxes {
				if err := p.broker.evict(t.Context(), d.name); err != nil {
					t.Log(err)
				}
			}
		}
		if time.Since(told) > 20*time.Second {
			told = time.Now()
			t.Log(state)
		}
		if time.Since(began) > p.patience {
			t.Fatalf("not quiet within %v: %s", p.patience, state)
		}
	}
}

// quiet reports whether nothing is left to do. A message that a handler has written is in
// an outbox until it is in a topic, so it cannot hide between the three looks.
func (p *campaign) quiet(ctx context.Context, boxes []*database) (bool, string) {
	before, err := p.broker.ends(ctx, "orders", "payments", "stock")
	var lag, waiting int64
	for _, d := range boxes {
		n, lagErr := p.broker.lag(ctx, d.service)
		lag += n
		err = errors.Join(err, lagErr)
	}
	empty := true
	for _, d := range boxes {
		s, statsErr := d.box.Stats(ctx)
		empty = empty && s == outbox.Stats{}
		waiting += s.Waiting
		err = errors.Join(err, statsErr)
	}
	after, endErr := p.broker.ends(ctx, "orders", "payments", "stock")
	err = errors.Join(err, endErr)
	return err == nil && lag == 0 && empty && before == after, fmt.Sprintf("%d records, %d of them not handled, %d messages in outboxes, error %v", after, lag, waiting, err)
}

const claim = "an order whose three services, publishers and broker are killed and frozen ends booked or exactly undone; no event is lost or out of order, and no effect happens twice"

// The services, their publishers and the broker are killed and frozen while the last step
// refuses one order in five: each order ends booked or exactly undone. The short form runs
// on kfake, the normal one on Apache Kafka where it can be had, and the long one on both.
func TestCampaign_EverythingKilledAndFrozen_EachOrderBookedOrUndone(t *testing.T) {
	demand := os.Getenv("SEMEL_TEST_KAFKA")
	out, err := exec.Command(filepath.Join("..", "..", "scripts", "kafka", "kafka"), "have").CombinedOutput()
	apache := demand == "1" || demand != "0" && err == nil
	t.Run("kfake", func(t *testing.T) {
		if apache && !testing.Short() && !long() {
			t.Skip("the normal form runs on Apache Kafka")
		}
		exactly(t, false)
	})
	t.Run("Apache Kafka", func(t *testing.T) {
		if testing.Short() {
			t.Skip("the short form runs on kfake")
		}
		if !apache {
			t.Skipf("NOT TESTED ON A REAL KAFKA, but on kfake: %v %s", err, out)
		}
		exactly(t, true)
	})
}

// long reports whether SEMEL_EVIDENCE=1 asks for the long form.
func long() bool { return os.Getenv("SEMEL_EVIDENCE") == "1" }

func exactly(t *testing.T, apache bool) {
	p, a := run(t, apache, example, sizeOf(long()))
	for _, text := range a.examples {
		t.Error(text)
	}
	if a.wrong() > 0 || a.booked != p.orders*unitsPerItem/ordersPerItem || a.cancelled != p.orders-a.booked {
		t.Errorf("%d orders: %s", p.orders, a)
	}
	if p.fleet.kills.Load() == 0 || p.fleet.freezes.Load() == 0 {
		t.Errorf("too little failed: %s", p.detail)
	}
	report(t, figure{Claim: claim, Where: p.broker.where + ", PostgreSQL", Trials: p.orders, Failures: a.wrong(), Detail: fmt.Sprint(a, "; ", p.detail)})
}

// The controls: services without deduplication, and services that publish after or before
// their commit, fail the same audit under the same faults.
func TestCampaign_NaiveServices_FailTheAudit(t *testing.T) {
	if testing.Short() {
		t.Skip("the controls run in the normal form")
	}
	s := size{orders: 150, customers: 20, members: 1, faults: 6, every: 300 * time.Millisecond, deadly: 100, patience: 10 * time.Minute}
	for f, found := range map[form]func(a *audit) int{
		noDeduplication: func(a *audit) int { return a.double },
		afterCommit:     func(a *audit) int { return a.lost },
		beforeCommit:    func(a *audit) int { return a.balances + a.excess + a.letters },
	} {
		t.Run(string(f), func(t *testing.T) {
			p, a := run(t, false, f, s)
			for range 3 { // a death may miss the moment that this form does not survive
				if found(a) > 0 {
					break
				}
				p, a = run(t, false, f, s)
			}
			if found(a) == 0 {
				t.Errorf("the audit has not found what this form does wrong: %s", a)
			}
			report(t, figure{Claim: "services that are naive fail the audit: " + string(f), Where: p.broker.where + ", PostgreSQL", Trials: p.orders, Failures: a.wrong(), Control: true, Detail: a.String()})
		})
	}
}
