//go:build unix

package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/test/internal/faultproxy"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/stores"
)

// Between the workers and their store calls are lost, applied without a reply,
// applied twice and applied late. Every doubt is resolved: one outcome for
// all, and under park one effect.
func TestStoreLosesCallsAndReplies_OneOutcomePerKey(t *testing.T) { onEachPolicy(t, lossyStore) }

func lossyStore(t *testing.T, b stores.Backend, in stores.Instance, policy semel.Policy) {
	c := newCampaign(t, b, in, policy)
	c.keys, c.copies = 200, 2
	if figure.Long() {
		c.keys = 6000
	}
	c.spec.Faults = 0.4
	var network *faultproxy.Proxy
	if in.Through != nil { // a real network
		network = proxied(t, in.Addr, faultproxy.Chance(seed, 0.8, faultproxy.Mix{MaxAfter: 8_000, MaxDelay: 50 * time.Millisecond}))
		c.spec.Faults, c.spec.URL = 0, in.Through(network.Addr())
		c.spec.Patience, c.spec.Settle = time.Second, time.Second // a stalled connection says nothing
	}
	c.start()
	c.finish(5 * time.Minute)
	f := c.verdict()
	report(t, f.wrong)
	where := "between Guard and store: " + counts(c.desk.faults)
	if network != nil {
		where = "on the network: " + tallyOf(network)
	}
	figure.Report(t, figure.Figure{
		Claim: "calls of the store that are lost, late, doubled or unanswered leave one outcome for all callers, and an effect for it",
		Where: b.Name + ", " + policy.String(), Trials: int64(c.keys), Failures: int64(len(f.wrong)),
		Detail: fmt.Sprintf("%d answers; %d keys took effect again after their run was told that it did not count; %d asked about; deliveries: %s; faults %s",
			f.answers, f.repeated, c.ledger.asked, counts(c.tally), where),
	})
}
