package sim

import (
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel"
)

// tick is the grain of the simulation. Each message is delivered at a multiple
// of it. Semel's own pauses are random, but each begins at a multiple of a tick
// and is shorter than a tenth of one, and no deadline falls into that tenth: so
// where a pause ends changes nothing, and the seed decides all.
const tick = 16 * time.Second

// The odd parts of a tick that deadlines are put at. A keeper looks at its
// leases at quarters.
const (
	oddAnswer = tick * 7 / 32
	oddSettle = tick * 6 / 32
	oddWait   = tick * 5 / 32
)

// forever is a retention that outlasts each seed.
const forever = 10_000 * tick

// chances are the odds of the faults of one message.
type chances struct {
	before, lost, late, twice, stall, slow float64
	renewal                                float64 // that a renewal is lost, besides
}

// plan is the choices of a seed before it runs: which faults are on, and the
// options. Some faults are off in each plan, so that the others have more effect
// ("swarm testing").
type plan struct {
	policy                     policyMix
	procs, keys, calls         int
	horizon                    int // ticks with faults
	message                    chances
	crash, freeze, jump, down  float64 // odds for each tick
	sweep, reconcile, operator float64
	handler                    habits

	lease, retention, reservation time.Duration
	settle, answer                time.Duration
	maxAttempts, backoff          int
	waiters                       int
	payloads                      int
	reserve, redeemTwice          float64
	wait, leave                   float64
	asks                          bool // parked calls are reconciled by the next call
	rerun, unprotected            bool
}

// habits are the odds of the actions of a handler.
type habits struct {
	noEffect, plain, final, panics, goexit, complete, big, step, deaf float64
	steps                                                             int // at most, each with the odds of step
	long                                                              int // ticks that one of its two pauses takes at most
}

type policyMix uint8

const (
	allRetry policyMix = iota
	allPark
	mixed
	atomically
	mixes
)

func (m policyMix) String() string { return [...]string{"retry", "park", "mixed", "atomic"}[m] }

func draw(rng *rand.Rand) plan {
	on := func(p float64) float64 { // a fault is on in four seeds of ten, at a rate of its own
		if rng.IntN(10) < 4 {
			return p * (0.2 + rng.Float64())
		}
		return 0
	}
	lucky := func(n int) bool { return rng.IntN(n) == 0 }
	p := plan{
		policy: policyMix(rng.IntN(3)), procs: 2 + rng.IntN(3), keys: 1 + rng.IntN(3), calls: 10 + rng.IntN(14), horizon: 40 + rng.IntN(30),
		message: chances{
			before: on(0.15), lost: on(0.15), late: on(0.15), twice: on(0.2), stall: on(0.06), slow: on(0.4), renewal: on(0.7),
		},
		crash: on(0.04), freeze: on(0.06), jump: on(0.04), down: on(0.03),
		sweep: on(0.2), reconcile: on(0.15), operator: on(0.1),
		handler: habits{
			noEffect: on(0.3), plain: on(0.3), final: on(0.2), panics: on(0.2), goexit: on(0.05), complete: on(0.3), big: on(0.2), step: on(0.4),
			steps: 1 + rng.IntN(4), deaf: on(0.8), long: []int{0, 2, 8, 20}[rng.IntN(4)],
		},
		payloads: 1, reserve: on(0.4), redeemTwice: on(0.6), wait: 2 * on(0.4), leave: on(0.2), asks: lucky(2),
	}
	// A 24th of the lease is a part of a tick, and the odd nanoseconds keep a
	// renewal's time-out, a sixth, off the moment of the next look.
	p.lease = 24*[]time.Duration{tick / 4, tick / 2}[rng.IntN(2)] + 23
	p.settle = time.Duration(1+rng.IntN(4))*tick + oddSettle
	p.answer = p.settle.Truncate(tick) + oddAnswer
	p.retention = forever
	if lucky(4) {
		p.retention = time.Duration(12+rng.IntN(20)) * tick
	}
	p.reservation = time.Duration(4+rng.IntN(8)) * tick
	if lucky(3) {
		p.maxAttempts = 1 + rng.IntN(3)
	}
	if lucky(3) {
		p.backoff = 1 + rng.IntN(3)
	}
	if lucky(8) {
		p.waiters = 1
	}
	if lucky(3) {
		p.payloads = 2
	}
	p.rerun = p.policy != allPark && lucky(6)
	p.unprotected = p.policy == allRetry && lucky(12)
	if lucky(4) {
		p.atomic()
	}
	return p
}

// atomic makes it a plan of transactions.
func (p *plan) atomic() {
	p.policy, p.rerun, p.unprotected, p.asks, p.reconcile, p.operator = atomically, false, false, false, 0, 0
	p.maxAttempts = 0
}

// calm removes all faults from the plan, for the end of a run.
func (p *plan) calm() {
	p.message = chances{}
	p.crash, p.freeze, p.jump, p.down, p.sweep, p.operator, p.reconcile = 0, 0, 0, 0, 0, 0, 0
	p.handler = habits{}
}

func (p *plan) options(w *world, policy semel.Policy) *semel.Options {
	o := &semel.Options{
		OnDoubt: policy, Lease: p.lease, Retention: p.retention, Reservation: p.reservation, StoreTimeout: p.answer, SettleTimeout: p.settle,
		MaxAttempts: p.maxAttempts, MaxWaiters: p.waiters, MaxOutcome: 1 << 10, Holder: "sim", Observe: w.observe,
	}
	if p.backoff > 0 {
		o.Backoff = func(n int) time.Duration { return time.Duration(n*p.backoff) * tick }
	}
	if policy == semel.Park && p.asks {
		o.Reconcile = w.reconciler
	}
	return o
}
