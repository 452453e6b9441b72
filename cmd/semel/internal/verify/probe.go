package verify

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/store"
)

// Operation is the operation of all records of a run. The check that separates
// operations also uses otherOperation. Each run is a tenant.
const (
	Operation      = "semel-verify"
	otherOperation = "semel-verify-other"
)

const (
	// long is a lease or retention that does not end during a check. If semel
	// verify is killed, its records expire soon after.
	long = 10 * time.Minute
	// short is one that a check waits for.
	short = 300 * time.Millisecond
	// most is the number of violations that a report describes for each check.
	most = 5
)

// probe is what a check works with. Safe for concurrent use.
type probe struct {
	target *Target
	o      *Options
	stores []patient
	tenant string
	name   string // of the check
	made   *made
	resent *atomic.Int64

	mu      sync.Mutex
	result  Result
	latency *Latency
}

// made lists the records of a run, so that its end can remove them.
type made struct {
	mu     sync.Mutex
	keys   map[store.Key]bool
	owners map[store.Owner]bool
}

// forCheck is the probe of one check.
func (p *probe) forCheck(c check) *probe {
	return &probe{
		target: p.target, o: p.o, stores: p.stores, tenant: p.tenant, name: c.name, made: p.made, resent: p.resent,
		result: Result{Name: c.name, Claim: c.claim, Violations: []string{}, Warnings: []string{}, Info: []string{}},
	}
}

// store returns a connection. If there are several, neighbouring numbers get
// different ones.
func (p *probe) store(i int) patient { return p.stores[i%len(p.stores)] }

// random gives the same numbers to the same check of the same seed.
func (p *probe) random() *rand.Rand {
	h := uint64(14695981039346656037)
	for _, b := range []byte(p.name) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return rand.New(rand.NewPCG(p.o.Seed, h)) // data, not secrets
}

// key is a key of this run and check.
func (p *probe) key(kind string, i int) store.Key {
	return p.own(store.Key{Operation: Operation, Tenant: p.tenant, Value: p.name + "/" + kind + "/" + strconv.Itoa(i)})
}

// own remembers a key, so that the end removes its record. No key is used that
// it was not asked for.
func (p *probe) own(k store.Key) store.Key {
	p.made.mu.Lock()
	defer p.made.mu.Unlock()
	p.made.keys[k] = true
	return k
}

// owner is a fresh one.
func (p *probe) owner() (o store.Owner) {
	_, _ = crand.Read(o[:]) // never fails
	p.made.mu.Lock()
	defer p.made.mu.Unlock()
	p.made.owners[o] = true
	return o
}

// foreign reports whether another process changed a record: a sweep that recovers
// lapsed claims.
func (p *probe) foreign(r *store.Record) bool {
	p.made.mu.Lock()
	defer p.made.mu.Unlock()
	return !p.made.owners[r.Owner]
}

// proposal returns the proposal of a fresh claim or swap.
func (p *probe) proposal(k store.Key, s store.State) store.Proposal {
	c := store.Proposal{
		Key: k, State: s, Owner: p.owner(), Holder: "semel verify " + p.tenant, Attempt: 1, Lease: long, Keep: long,
		Fingerprint: store.Fingerprint{Alg: "verify", Sum: "\x00\xff sum"},
	}
	if s.Terminal() {
		c.Outcome = p.outcome()
	}
	return c
}

// outcome returns an outcome that differs from all others.
func (p *probe) outcome() store.Outcome {
	o := p.owner()
	return store.Outcome{Code: 201, Codec: "verify", Body: o[:], Header: []store.Header{{Name: "X-A", Value: "2"}, {Name: "X-A", Value: "1"}}}
}

// settlement ends a claim; no two are equal.
func (p *probe) settlement(s store.State, keep time.Duration) store.Settlement {
	t := store.Settlement{State: s, Attempt: 1, Keep: keep}
	if s.Terminal() {
		t.Outcome = p.outcome()
	} else {
		t.Error = "tried by semel verify"
	}
	return t
}

// tried counts n trials.
func (p *probe) tried(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result.Trials += int64(n)
}

// broken counts a trial that broke the claim.
func (p *probe) broken(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.result.Failures++; len(p.result.Violations) < most {
		p.result.Violations = append(p.result.Violations, fmt.Sprintf(format, args...))
	}
}

func (p *probe) warn(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result.Warnings = append(p.result.Warnings, fmt.Sprintf(format, args...))
}

func (p *probe) info(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result.Info = append(p.result.Info, fmt.Sprintf(format, args...))
}

// expect counts a violation if differs is not empty.
func (p *probe) expect(what string, differs string) bool {
	if differs != "" {
		p.broken("%s: %s", what, differs)
	}
	return differs == ""
}

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
