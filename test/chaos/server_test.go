//go:build unix

package chaos

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/stores"
)

// After its server was killed, a store still has every acknowledged change, and a
// change that was under way is made once or not at all.
func TestServerKilled_AcknowledgedOutcomesKept(t *testing.T) {
	served := false
	for _, b := range stores.Backends {
		served = served || b.HasServer
	}
	if !served {
		t.Skip("no store of stores.Backends has a server")
	}
	onEachPolicy(t, killServer)
}

func killServer(t *testing.T, b stores.Backend, in stores.Instance, policy semel.Policy) {
	if !b.HasServer {
		t.Skip("the store has no server")
	}
	kills := 3
	if figure.Long() {
		kills = 40
	}
	c := newCampaign(t, b, in, policy)
	c.spec.Patience, c.spec.Settle = time.Second, time.Second
	c.start()
	for range kills {
		seen := c.answers()
		eventually(t, 3*time.Minute, "answers between two kills", func() bool { return c.answers() >= seen+between })
		<-time.After(rand.N(20 * time.Millisecond))
		in.Kill()
		if err := in.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	c.finish(5 * time.Minute)
	f := c.verdict()
	report(t, f.wrong)
	figure.Report(t, figure.Figure{
		Claim: "outcomes that a killed server has acknowledged are kept: one outcome for all callers, and an effect for it",
		Where: b.Name + ", " + policy.String(), Trials: int64(kills), Failures: int64(len(f.wrong)),
		Detail: fmt.Sprintf("%d keys, %d answers, all alike; %d keys took effect again; %d asked about; deliveries: %s",
			f.keys, f.answers, f.repeated, c.ledger.asked, counts(c.tally)),
	})
}
