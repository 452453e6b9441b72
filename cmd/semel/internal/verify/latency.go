package verify

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/semel-go/semel/store"
)

// Latency is how long the store took for one caller's calls, in milliseconds.
type Latency struct {
	Claim     Quantiles `json:"claim"`
	Settle    Quantiles `json:"settle"`
	Duplicate Quantiles `json:"duplicate"`
}

// Quantiles are in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// tooSlow is a tenth of the default lease: its renewals have little time then.
const tooSlow = 3 * time.Second

var latencyCheck = check{
	name:  "latency",
	claim: "A lone call claims, settles and is replayed; how long that takes is for information.",
	run: func(ctx context.Context, p *probe) error {
		n := max(20, p.o.Keys)
		claims, settles, dups := make([]time.Duration, 0, n), make([]time.Duration, 0, n), make([]time.Duration, 0, n)
		for i := range n {
			c := p.proposal(p.key("k", i), store.Processing)
			begun := time.Now()
			r, err := p.claimed(ctx, i, c)
			claims = append(claims, time.Since(begun))
			if err != nil || r == nil {
				return err
			}
			begun = time.Now()
			refused, err := lost(p.store(i).Settle(ctx, r.Lease(), p.settlement(store.Completed, long)))
			settles = append(settles, time.Since(begun))
			if err != nil {
				return err
			}
			p.won(c.Key, "the settlement of a lone call", !refused)
			begun = time.Now()
			f, err := p.store(i).Claim(ctx, p.proposal(c.Key, store.Processing))
			dups = append(dups, time.Since(begun))
			if err != nil {
				return err
			}
			if f.Won {
				p.broken("%q: a duplicate of a lone call wins", c.Key.Value)
			}
		}
		l := &Latency{quantiles(claims), quantiles(settles), quantiles(dups)}
		p.latency = l
		for name, q := range map[string]Quantiles{"claim": l.Claim, "settlement": l.Settle} {
			if q.P99 > float64(tooSlow/time.Millisecond) {
				p.warn("the slowest %ss take %.0f ms: a lease has to be several times that, and a third of it is the time for a renewal", name, q.P99)
			}
		}
		return nil
	},
}

// quantiles are by nearest rank.
func quantiles(ds []time.Duration) Quantiles {
	slices.Sort(ds)
	at := func(q float64) float64 {
		i := int(math.Ceil(q*float64(len(ds)))) - 1
		return float64(ds[i].Microseconds()) / 1000
	}
	return Quantiles{P50: at(0.5), P99: at(0.99), Max: at(1)}
}
