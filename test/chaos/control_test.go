//go:build unix

package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/test/internal/faultproxy"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/stores"
)

// Each of these tests breaks one part, and the audit that finds nothing in the
// other tests must see it.

func TestControl_WithoutSemel_RepeatSeen(t *testing.T)   { control(t, withoutSemel, 60) }
func TestControl_ClaimNotAtomic_RepeatSeen(t *testing.T) { control(t, checkThenSet, 200) }
func TestControl_SettlementLost_RepeatSeen(t *testing.T) { control(t, forgetful, 60) }

func control(t *testing.T, how string, keys int) {
	onEach(t, func(t *testing.T, b stores.Backend, in stores.Instance) {
		t.Parallel()
		c := newCampaign(t, b, in, semel.Retry)
		c.keys, c.copies, c.spec.Wrap = keys, 4, how
		c.start()
		c.finish(5 * time.Minute)
		f := c.ledger.audit(semel.Retry)
		if len(f.wrong) == 0 || f.repeated == 0 || f.surplus == 0 {
			t.Errorf("with %q the audit found %d wrong, %d keys paid again: it cannot see", how, len(f.wrong), f.repeated)
		}
		figure.Report(t, figure.Figure{
			Claim: "the audit sees effects that are repeated: " + how, Where: b.Name, Control: true,
			Trials: int64(keys), Failures: int64(f.repeated), Detail: fmt.Sprintf("%d units paid twice, %d findings", f.surplus, len(f.wrong)),
		})
	})
}

// The same clients over the same network, with nothing between that makes a
// request take effect once.
func TestControl_NetworkWithoutSemel_RepeatSeen(t *testing.T) {
	t.Parallel()
	const keys = 200
	l := newLedger()
	network := proxied(t, strings.TrimPrefix(newBank(t, l, false).URL, "http://"), faultproxy.Chance(seed, 0.6, before))
	c := &clients{t: t, url: "http://" + network.Addr() + "/pay", ledger: l}
	c.run(keys)
	f := l.audit(semel.Park)
	if len(f.wrong) == 0 || f.repeated == 0 || f.surplus == 0 {
		t.Errorf("without Semel the audit found %d wrong, %d keys paid again: it cannot see", len(f.wrong), f.repeated)
	}
	figure.Report(t, figure.Figure{
		Claim: "the audit sees requests that take effect again when they are sent again: " + withoutSemel, Where: "bad network", Control: true,
		Trials: keys, Failures: int64(f.repeated), Detail: fmt.Sprintf("%d units paid twice, %d findings; %d requests; %s", f.surplus, len(f.wrong), c.sent.Load(), tallyOf(network)),
	})
}

// Without the fence a frozen owner overwrites what its successor recorded.
func TestControl_SettleWithoutFence_OverwriteSeen(t *testing.T) {
	onEach(t, func(t *testing.T, b stores.Backend, in stores.Instance) {
		t.Parallel()
		const rounds = 4
		f := newFreezer(t, b, in)
		w := f.worker(semel.Retry, unfenced)
		for n := range rounds {
			f.round(w, fmt.Sprintf("0/%d", n), afterEffect)
		}
		if len(f.wrong) == 0 {
			t.Error("a zombie that overwrites the record was not seen")
		}
		audit := f.ledger[semel.Retry].audit(semel.Retry)
		figure.Report(t, figure.Figure{
			Claim: "the audit sees a frozen owner that overwrites the record of its successor: " + unfenced, Where: b.Name, Control: true,
			Trials: rounds, Failures: rounds - f.refused.Load(), Detail: fmt.Sprintf("%d findings by record and replay, %d by the ledger", len(f.wrong), len(audit.wrong)),
		})
	})
}
