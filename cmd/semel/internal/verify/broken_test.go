package verify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// brokenStores are stores with one thing wrong, and the check that has to say so.
var brokenStores = []struct {
	check, wrong string
	spoil        func(*sick)
}{
	{"settings", "a setting is unsafe", func(s *sick) {
		s.check = func(context.Context) error { return errors.New("fsync is off") }
	}},
	{"clock", "answers with a time an hour ahead of what it writes", ahead(time.Hour)},
	{"clock", "answers with a time an hour behind what it writes", ahead(-time.Hour)},
	{"claim-race", "grants to all", grantsTwice},
	{"claim-race", "looks first, and then writes", looksFirst},
	{"strangers", "takes keys for one that begin alike", mixesUp(valueOnly(func(v string) string { return v[:min(len(v), 10)] }))},
	{"swap-race", "swaps without comparing", swapsBlindly},
	{"swap-race", "compares the state only", swapsByState},
	{"swap-race", "has one fence for all", oneFence},
	{"settle-race", "settles for anybody, again and again", settlesAgain},
	{"settle-race", "settles for anybody after a take-over", settlesAnybody},
	{"settle-race", "says that it settled", settlesNothing},
	{"process-race", "grants to all", grantsTwice},
	{"process-race", "looks first, and then writes", looksFirst},
	{"lost-reply", "does not know a claim that comes again", forgetsItself},
	{"lost-reply", "refuses the same settlement", settlesOnce},
	{"lost-reply", "accepts another settlement", settlesAgain},
	{"lost-reply", "grants to all", grantsTwice},
	{"late-message", "settles for anybody", settlesAnybody},
	{"late-message", "renews for anybody", renewsAnybody},
	{"late-message", "swaps without comparing", swapsBlindly},
	{"late-message", "makes the record that it does not find", upserts},
	{"zombie", "settles for anybody", settlesAnybody},
	{"zombie", "renews for anybody", renewsAnybody},
	{"zombie", "renews for longer than was asked", renewsLong},
	{"zombie", "has one fence for all", oneFence},
	{"zombie", "grants what has lapsed", freesState(store.Processing)},
	{"zombie", "its clock stands still", stops(time.Now())},
	{"expiry", "keeps for half of the time", keepsHalf},
	{"expiry", "sweeps nothing", sweepsNothing},
	{"expiry", "has one fence for all", oneFence},
	{"expiry", "grants what is kept", freesState(store.Completed)},
	{"doubt", "sweeps claims that have lapsed", sweepsStates(store.Processing)},
	{"doubt", "sweeps reservations that have lapsed", sweepsStates(store.Started)},
	{"doubt", "sweeps what is parked", sweepsStates(store.Unknown)},
	{"doubt", "hands nothing back", handsNothingBack},
	{"doubt", "grants what has lapsed", freesState(store.Processing)},
	{"doubt", "grants what is parked", freesState(store.Unknown)},
	{"data", "loses the header", spoils(noHeader)},
	{"data", "sorts the header", spoils(sortedHeader)},
	{"data", "keeps text only", spoils(textHeader)},
	{"data", "cuts bodies at 64 KiB", spoils(shortBody)},
	{"data", "ends bodies at a zero byte", spoils(cBody)},
	{"data", "loses the fingerprint", spoils(noFingerprint)},
	{"data", "keeps text in the fingerprint", spoils(textSum)},
	{"data", "cuts the holder", spoils(shortHolder)},
	{"data", "loses the outcome", spoils(noOutcome)},
	{"keys", "folds case", mixesUp(valueOnly(strings.ToLower))},
	{"keys", "trims space", mixesUp(valueOnly(strings.TrimSpace))},
	{"keys", "ends keys at a zero byte", mixesUp(valueOnly(func(v string) string { v, _, _ = strings.Cut(v, "\x00"); return v }))},
	{"keys", "keeps text only", mixesUp(valueOnly(func(v string) string { return strings.ToValidUTF8(v, "\ufffd") }))},
	{"keys", "cuts keys", mixesUp(valueOnly(func(v string) string { return v[:min(len(v), 254)] }))},
	{"keys", "folds braces away, as hash tags", mixesUp(valueOnly(func(v string) string {
		if i := strings.Index(v, "}"); i > 0 && v[0] == '{' {
			return v[i:]
		}
		return v
	}))},
	{"keys", "does not keep tenants apart", mixesUp(func(k store.Key) store.Key { k.Tenant = ""; return k })},
	{"keys", "folds the case of tenants", mixesUp(func(k store.Key) store.Key { k.Tenant = strings.ToLower(k.Tenant); return k })},
	{"keys", "does not keep operations apart", mixesUp(func(k store.Key) store.Key { k.Operation = Operation; return k })},
	{"keys", "joins the parts of a key", mixesUp(func(k store.Key) store.Key {
		return store.Key{Operation: k.Operation, Value: k.Tenant + ":" + k.Value}
	})},
	{"keys", "joins the parts without anything between", mixesUp(func(k store.Key) store.Key {
		return store.Key{Operation: k.Operation, Value: k.Tenant + k.Value}
	})},
	{"guard", "grants to all", grantsTwice},
	{"guard", "grants what is kept", freesState(store.Completed)},
	{"guard", "grants what is parked", freesState(store.Unknown)},
	{"guard", "loses the fingerprint", spoils(noFingerprint)},
	{"guard", "loses the outcome", spoils(func(r *store.Record) { r.Outcome.Body = []byte(`{"Number":7}`) })},
	{"latency", "grants to all", grantsTwice},
	{"cleanup", "sweeps nothing", sweepsNothing},
	{"cleanup", "swaps nothing", func(s *sick) {
		s.swap = func(ctx context.Context, seen store.Seen, _ store.Proposal) (store.Found, error) {
			return s.Store.Get(ctx, seen.Key)
		}
	}},
}

func TestVerify_BrokenStore_FoundByItsCheck(t *testing.T) {
	caught, missed := map[string]bool{}, 0
	for _, b := range brokenStores {
		caught[b.check] = true
		ok := t.Run(b.check+": "+b.wrong, func(t *testing.T) { bubble(t, func(t *testing.T) { findsOut(t, b.check, b.spoil) }) })
		if !ok {
			missed++
		}
	}
	t.Logf(`evidence: {"claim":"a store with one thing wrong is found out by semel verify","trials":%d,"failures":%d}`, len(brokenStores), missed)
	for _, name := range append(Names(), cleanup.name) {
		if !caught[name] {
			t.Errorf("no broken store shows that %s can fail", name)
		}
	}
}

// findsOut fails unless the check finds a violation, and says what it is.
func findsOut(t *testing.T, name string, spoil func(*sick)) {
	t.Helper()
	s := new(clockwork).sound()
	if spoil != nil {
		spoil(s)
	}
	o := small(name)
	if name == cleanup.name { // which always runs
		o.Only = []string{"strangers"}
	}
	r, err := Run(t.Context(), targetOf(s), o)
	sure(t, r, err, name)
}

func sure(t *testing.T, r *Report, err error, name string) {
	t.Helper()
	c, ok := r.Result(name)
	if !ok || c.Verdict != Broken || c.Failures == 0 || len(c.Violations) == 0 || c.Violations[0] == "" {
		t.Fatalf("it is not found out: %+v", c)
	}
	if b, ok := errors.AsType[*BrokenError](err); !ok || !strings.Contains(err.Error(), name) || len(b.Broken) == 0 || r.OK {
		t.Errorf("error %v, OK %v", err, r.OK)
	}
	if c.Trials < 1 || c.Failures > 3*c.Trials {
		t.Errorf("%d failures in %d trials", c.Failures, c.Trials)
	}
	t.Log(c.Violations[0])
}

func TestVerify_SweepTooEarly_IsFound(t *testing.T) {
	for ahead, check := range map[time.Duration]string{time.Hour: "expiry", 2 * long: "expiry"} {
		bubble(t, func(t *testing.T) {
			c := new(clockwork)
			s := c.sound()
			sweepsEarly(c, ahead)(s)
			r, err := Run(t.Context(), targetOf(s), small(check))
			sure(t, r, err, check)
		})
	}
}

func TestVerify_ConnectionWithOwnClock_IsFound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		one := new(clockwork).sound()
		other := &sick{Store: one.Store}
		ahead(time.Hour)(other)
		r, err := Run(t.Context(), targetOf(one, other), small("clock"))
		sure(t, r, err, "clock")
	})
}
