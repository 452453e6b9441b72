//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/stores"
)

// Wherever a worker dies, each key ends with one outcome that all callers get.
// Under retry an effect is repeated only if its run was cut off between the
// effect and the acknowledged settlement; under park none is.
func TestWorkersKilled_OneOutcomePerKey(t *testing.T) { onEachPolicy(t, killWorkers) }

// deaths are where workers die, in turn.
var deaths = []point{beforeClaim, afterClaim, beforeEffect, afterEffect, beforeSettle, afterSettle, anywhere, beforeSwap, afterSwap}

// between is how many answers are given between two kills, at least: else
// nothing but dying would happen.
const between = 5

func killWorkers(t *testing.T, b stores.Backend, in stores.Instance, policy semel.Policy) {
	rounds := 2
	if figure.Long() {
		rounds = 60 // 540 kills under each policy
	}
	c := newCampaign(t, b, in, policy)
	c.start()
	killed := map[point]int{}
	for range rounds {
		for _, p := range deaths {
			seen := c.answers()
			eventually(t, 3*time.Minute, "answers between two kills", func() bool { return c.answers() >= seen+between })
			for range 5 {
				if c.killAt(p) {
					killed[p]++
					break
				}
				if c.killAt(afterClaim) { // nobody swaps unless a claim is left behind
					killed[afterClaim]++
				}
			}
		}
	}
	c.finish(5 * time.Minute)
	f := c.verdict()
	report(t, f.wrong)
	kills := 0
	for _, p := range deaths {
		kills += killed[p]
		if killed[p] < rounds {
			t.Errorf("%d of %d deaths %s: the test has not met what it is for", killed[p], rounds, p)
		}
	}
	if policy == semel.Retry && f.repeated == 0 || policy == semel.Park && c.ledger.asked == 0 {
		t.Errorf("%d effects repeated, %d reconciled: the test has not met what it is for", f.repeated, c.ledger.asked)
	}
	figure.Report(t, figure.Figure{
		Claim: "a key whose worker was killed has one outcome for all callers, and an effect for it; " + promise[policy],
		Where: b.Name + ", " + policy.String(), Trials: int64(kills), Failures: int64(len(f.wrong)),
		Detail: fmt.Sprintf("kills: %s; %d keys, %d answers, all alike; %d keys took effect again, %d units paid twice, %d asked about; deliveries: %s",
			counts(killed), f.keys, f.answers, f.repeated, f.surplus, c.ledger.asked, counts(c.tally)),
	})
}

var promise = map[semel.Policy]string{
	semel.Retry: "the effect is repeated only after a death between it and its settlement",
	semel.Park:  "no effect is repeated",
}

func (c *campaign) answers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acks
}

// killAt kills the next worker that gets to a point, and replaces it. It
// reports false if none does.
func (c *campaign) killAt(p point) bool {
	c.t.Helper()
	if p == anywhere {
		<-time.After(rand.N(15 * time.Millisecond))
		all := c.alive()
		slices.SortFunc(all, func(a, b *process) int { return a.id - b.id })
		c.replace(all[rand.N(len(all))])
		return true
	}
	c.mu.Lock()
	c.wanted = p
	c.mu.Unlock()
	select {
	case w := <-c.victim:
		c.replace(w)
		return true
	case <-time.After(10 * time.Second):
		c.mu.Lock()
		chosen := c.wanted == ""
		c.wanted = ""
		c.mu.Unlock()
		if chosen { // at this very moment
			c.replace(<-c.victim)
		}
		return chosen
	}
}
