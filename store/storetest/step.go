package storetest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/store"
)

// A history is a list of steps by a few actors on a few keys. A step depends only
// on its own bits and on its actor's memory, so a history can be played again, on
// another store, and without some of its steps.
const (
	actors   = 3
	subjects = 3 // keys
)

// deed is the operation of a step.
type deed uint8

const (
	doClaim       deed = iota
	doClaimAgain       // the actor's last claim, sent again
	doDecide           // read, call store.Decide, and act on it
	doSwapStale        // swap on the record that the actor saw last, which may have changed
	doSwapWrong        // swap on the stored record, with one field wrong
	doSwapAgain        // the actor's last swap, sent again
	doRenew            // all leases that the actor holds, and one that it does not
	doSettle           // the claim that the actor won last
	doSettleWrong      // with a wrong owner or fence, or another's lease
	doSettleAgain      // the actor's last settlement, or one like it
	doGet
	doSweep   // one whole pass
	doAdvance // the clock
)

var deedNames = [...]string{
	doClaim: "claim", doClaimAgain: "claim again", doDecide: "read, decide, do", doSwapStale: "swap on what it saw last",
	doSwapWrong: "swap with a wrong field", doSwapAgain: "swap again", doRenew: "renew", doSettle: "settle",
	doSettleWrong: "settle with a wrong lease", doSettleAgain: "settle again", doGet: "get", doSweep: "sweep", doAdvance: "advance",
}

// deedWeights is how often each deed comes, of their sum.
var deedWeights = [...]int{
	doClaim: 12, doClaimAgain: 5, doDecide: 24, doSwapStale: 8, doSwapWrong: 6, doSwapAgain: 5, doRenew: 7,
	doSettle: 12, doSettleWrong: 6, doSettleAgain: 5, doGet: 2, doSweep: 4, doAdvance: 8,
}

// step is one step of a history.
type step struct {
	deed       deed
	actor, key uint8
	at         uint16 // its place in the history
	id         uint64 // unlike any other step's: makes the owner tokens
	bits       uint64 // all its other choices
}

// script makes the n steps of a seed.
func script(seed uint64, n int) []step {
	rng := rand.New(rand.NewPCG(seed, 0x53656d656c))
	sum := 0
	for _, w := range deedWeights {
		sum += w
	}
	steps := make([]step, n)
	for i := range steps {
		p := step{at: uint16(i), actor: uint8(rng.IntN(actors)), key: uint8(rng.IntN(subjects)), id: mix(seed + uint64(i)), bits: rng.Uint64()}
		for at := rng.IntN(sum); ; p.deed++ {
			if at -= deedWeights[p.deed]; at < 0 {
				break
			}
		}
		steps[i] = p
	}
	return steps
}

// pick draws the choice that a step's bits make among n: the field says which
// choice it is, so that choices are independent.
func (p *step) pick(field, n uint64) int { return int(mix(p.bits^field<<32) % n) }

// The fields of a step's choices.
const (
	pickState uint64 = iota
	pickLease
	pickKeep
	pickWait
	pickMove
	pickCall
	pickBearer
	pickMax
	pickPolicy
	pickPrint
	pickWrong
	pickOutcome
	pickVariant
	pickLimit
)

func (p *step) owner() (o store.Owner) {
	binary.LittleEndian.PutUint64(o[:8], p.id)
	o[15] = p.actor + 1
	return o
}

// times are the durations of a history. They are chosen so that two stores agree
// which ones are over, although their clocks may differ.
type times struct {
	leases, waits, keeps, moves []time.Duration
	exact                       bool // one clock, so that equal times are equal on all sides
}

func (p *step) proposal(k store.Key, s store.State, tm *times) store.Proposal {
	pr := store.Proposal{
		Key: k, State: s, Policy: store.Policy(p.pick(pickPolicy, 5) / 4), Owner: p.owner(), Holder: "actor", Attempt: 1,
		Lease: tm.leases[p.pick(pickLease, uint64(len(tm.leases)))], Keep: tm.keeps[p.pick(pickKeep, uint64(len(tm.keeps)))],
		Fingerprint: prints[p.pick(pickPrint, 12)/11],
	}
	if s.Terminal() {
		pr.Outcome = p.outcome()
	}
	if s == store.Failed || s == store.Released || s == store.Unknown {
		pr.Error = "swapped"
	}
	return pr
}

// prints are the fingerprints of a history: the calls of a key mostly agree.
var prints = [...]store.Fingerprint{{Alg: "test", KeyID: "k1", Sum: "same\x00"}, {Alg: "test", KeyID: "k1", Sum: "other"}, {Alg: "test", KeyID: "k2", Sum: "same\x00"}}

func (p *step) call() store.Call {
	return store.Call{
		Policy: store.Policy(p.pick(pickCall, 4) / 3), Fingerprint: prints[max(0, p.pick(pickPrint, 16)-13)],
		MaxAttempts: [...]int{0, 0, 1, 2}[p.pick(pickMax, 4)],
	}
}

func (p *step) outcome() store.Outcome {
	o := store.Outcome{Code: 200 + p.pick(pickOutcome, 3), Codec: "json", Body: binary.LittleEndian.AppendUint64(nil, p.id)}
	switch p.pick(pickOutcome, 8) {
	case 0:
		o.Header = header("X-Many", "a", "X-Many", "b", "Location", "/1")
	case 1:
		o.Body, o.Gone = nil, true
	}
	return o
}

func (p *step) settlement(tm *times) store.Settlement {
	s := store.Settlement{
		State: finals[p.pick(pickState, uint64(len(finals)))], Attempt: p.pick(pickVariant, 3),
		Wait: tm.waits[p.pick(pickWait, uint64(len(tm.waits)))], Keep: tm.keeps[p.pick(pickKeep, uint64(len(tm.keeps)))],
	}
	if s.State.Terminal() {
		s.Outcome = p.outcome()
	}
	if s.State != store.Completed {
		s.Error = "settled"
	}
	return s
}

// describe is a step for people.
func (p *step) describe(tm *times) string {
	what := fmt.Sprintf("actor %d, key %d: %s", p.actor, p.key, deedNames[p.deed])
	switch p.deed {
	default:
	case doClaim, doDecide, doSwapStale, doSwapWrong:
		pr, c := p.proposal(store.Key{}, store.Processing, tm), p.call()
		what += fmt.Sprintf(" (policy %v, lease %v, keep %v; call policy %v, fingerprint %q, at most %d, variant %#x)",
			pr.Policy, pr.Lease, pr.Keep, c.Policy, c.Fingerprint.KeyID+c.Fingerprint.Sum, c.MaxAttempts, p.bits)
	case doSettle, doSettleWrong, doSettleAgain:
		s := p.settlement(tm)
		what += fmt.Sprintf(" (as %v, wait %v, keep %v, attempt %d, variant %#x)", s.State, s.Wait, s.Keep, s.Attempt, p.bits)
	case doRenew:
		what += fmt.Sprintf(" (by %v)", p.renewal(tm))
	case doSweep:
		what = fmt.Sprintf("sweep with limit %d", p.limit())
	case doAdvance:
		what = fmt.Sprintf("advance the clock by %v", p.move(tm))
	}
	return what
}

// renewal is how long a step renews for. Unless the clocks are one, it never
// comes to an Until that the lease had before, which a swap would not notice.
func (p *step) renewal(tm *times) time.Duration {
	d := tm.leases[p.pick(pickLease, uint64(len(tm.leases)))]
	if !tm.exact {
		d += time.Duration(p.at+1) * time.Microsecond
	}
	return d
}

// limit is small in one sweep of three. Then who is handed back may differ.
func (p *step) limit() int { return [...]int{1000, 1000, 2}[p.pick(pickLimit, 3)] }

// move is how far a step moves the clock. Unless the clocks are one, it never
// comes back to a time that was before: on a clock that runs it would not.
func (p *step) move(tm *times) time.Duration {
	if len(tm.moves) == 0 {
		return 0
	}
	d := tm.moves[p.pick(pickMove, uint64(len(tm.moves)))]
	if !tm.exact {
		d += time.Duration(p.at+1) * time.Microsecond
	}
	return d
}
