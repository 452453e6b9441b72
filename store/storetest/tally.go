package storetest

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/store"
)

// sight is an event that the histories have to reach. A test that does not reach
// the events that it is about proves nothing.
type sight uint8

const (
	sawOwnClaim sight = iota
	sawLostClaim
	sawExecute
	sawTakeOver
	sawReplay
	sawReplayFailure
	sawInProgress
	sawMismatch
	sawUnverifiable
	sawPark
	sawParked
	sawExhausted
	sawExpired
	sawWonSwap
	sawLostSwap
	sawOwnSwap
	sawRenewed
	sawRenewalLost
	sawSettled
	sawZombie
	sawSettledAgain
	sawOtherSettlement
	sawDeleted
	sawLapsed
	sawClockBack
	sights
)

var sightNames = [...]string{
	"own claim found again", "claim lost", "execute", "take over", "replay", "replay of a failure", "in progress", "mismatch", "unverifiable",
	"park", "parked", "exhausted", "expired token", "swap won", "swap lost", "own swap found again", "renewal", "renewal lost", "settlement",
	"owner without its lease refused", "same settlement again", "other settlement refused", "sweep that deleted", "sweep that returned lapsed records", "clock set back",
}

// tally counts what histories met.
type tally [sights]int

var decided = map[store.Action]sight{
	store.Execute: sawExecute, store.TakeOver: sawTakeOver, store.Replay: sawReplay, store.ReplayFailure: sawReplayFailure,
	store.InProgress: sawInProgress, store.Mismatch: sawMismatch, store.Unverifiable: sawUnverifiable, store.DoPark: sawPark,
	store.Parked: sawParked, store.Exhausted: sawExhausted, store.Expired: sawExpired,
}

// count notes what a step met on the first side.
func (t *tally) count(p *step, res *result, tm *times) {
	is := func(s sight, saw bool) {
		if saw {
			t[s]++
		}
	}
	if p.deed == doAdvance {
		is(sawClockBack, p.move(tm) < 0)
		return
	}
	if res.skipped {
		return
	}
	won, lost := res.found.Won, res.answer == leaseLost
	switch p.deed {
	default:
	case doClaim:
		is(sawLostClaim, !won)
	case doClaimAgain:
		is(sawOwnClaim, won)
	case doDecide:
		if s, ok := decided[res.action]; ok {
			t[s]++
		}
	case doSwapStale, doSwapWrong:
		is(sawWonSwap, won)
		is(sawLostSwap, !won)
	case doSwapAgain:
		is(sawOwnSwap, won)
	case doRenew:
		for _, v := range res.renewals {
			is(sawRenewed, v == fine)
			is(sawRenewalLost, v != fine)
		}
	case doSettle:
		is(sawSettled, !lost)
		is(sawZombie, lost)
	case doSettleAgain:
		is(sawSettledAgain, !lost)
		is(sawOtherSettlement, lost)
	case doSweep:
		is(sawDeleted, res.deleted > 0)
		is(sawLapsed, len(res.lapsed) > 0)
	}
}

func (t *tally) add(u *tally) {
	for i := range t {
		t[i] += u[i]
	}
}

// missing names what was never met.
func (t *tally) missing(but ...sight) (names []string) {
next:
	for i, n := range t {
		for _, b := range but {
			if sight(i) == b {
				continue next
			}
		}
		if n == 0 {
			names = append(names, sightNames[i])
		}
	}
	return names
}

func (t *tally) String() string {
	var b strings.Builder
	for i, n := range t {
		fmt.Fprintf(&b, "%s %d, ", sightNames[i], n)
	}
	return strings.TrimSuffix(b.String(), ", ")
}
