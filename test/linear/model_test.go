package linear

import (
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

var (
	one   = store.Key{Operation: "op", Value: "1"}
	start = store.Time(1_000_000)
)

// script is a history by hand: one operation after the other, unless it is left
// without an answer.
type script struct{ h History }

func (s *script) call(in Input, a *Answer) {
	in.Key = one
	n := s.h.Call(0, s.h.Tick(), &in)
	if a != nil {
		s.h.Return(n, s.h.Tick(), a)
	}
}

func offer(owner byte) store.Proposal {
	return store.Proposal{Key: one, State: store.Processing, Owner: store.Owner{owner}, Attempt: 1, Lease: time.Second, Keep: time.Minute}
}

// at is a moment after the start.
func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func (s *script) claim(owner byte, rec store.Record, won bool) {
	s.call(Input{Kind: Claim, Proposal: offer(owner)}, &Answer{Found: store.Found{Record: rec, Won: won}})
}

func (s *script) claimLost(owner byte) { s.call(Input{Kind: Claim, Proposal: offer(owner)}, nil) }

func (s *script) get(rec store.Record) {
	s.call(Input{Kind: Get}, &Answer{Found: store.Found{Record: rec}})
}

func (s *script) getNothing() { s.call(Input{Kind: Get}, &Answer{Err: store.ErrNotFound}) }

func (s *script) renew(l store.Lease, err error) {
	s.call(Input{Kind: Renew, Lease: l, For: time.Hour}, &Answer{Err: err})
}

func (s *script) settle(l store.Lease, t store.Settlement, err error) {
	s.call(Input{Kind: Settle, Lease: l, Settlement: t}, &Answer{Err: err})
}

func (s *script) settleLost(l store.Lease, t store.Settlement) {
	s.call(Input{Kind: Settle, Lease: l, Settlement: t}, nil)
}

func (s *script) sweep(now time.Time, lapsed ...store.Record) {
	a := &Answer{Now: now}
	for _, r := range lapsed {
		a.Lapsed, a.Found.Record = true, r
	}
	s.call(Input{Kind: Sweep}, a)
}

func made(owner byte, when time.Time) store.Record {
	p := offer(owner)
	return p.Insert(when, 0)
}

func taken(seen store.Record, owner byte, when time.Time) (Input, store.Record) {
	p := offer(owner)
	return Input{Kind: Swap, Seen: seen.Seen(), Proposal: p}, p.Replace(&seen, when)
}

func done(body string) store.Settlement {
	return store.Settlement{State: store.Completed, Attempt: 1, Keep: 5 * time.Second, Outcome: store.Outcome{Body: []byte(body)}}
}

func TestCheck_HandWrittenHistories_Judged(t *testing.T) {
	a := made(1, at(0))
	b := made(2, at(3))
	after := func(s store.Settlement, r store.Record, when time.Time) store.Record { return s.Apply(r, when) }
	paid := after(done("paid"), a, at(1))
	renewed := a
	renewed.Until, renewed.Updated = at(2).Add(time.Hour), at(2)

	for name, c := range map[string]struct {
		want Result
		play func(s *script)
	}{
		"a claim, and the loser's": {Ok, func(s *script) { s.claim(1, a, true); s.claim(2, a, false) }},
		"the same claim again":     {Ok, func(s *script) { s.claim(1, a, true); s.claim(1, a, true) }},
		"two winners":              {Illegal, func(s *script) { s.claim(1, a, true); s.claim(2, b, true) }},
		"a loser who is told that he won": {Illegal, func(s *script) {
			s.claim(1, a, true)
			s.claim(2, a, true)
		}},
		"a lost claim that was applied":      {Ok, func(s *script) { s.claimLost(1); s.get(a) }},
		"a lost claim that was not":          {Ok, func(s *script) { s.claimLost(1); s.getNothing(); s.claim(2, b, true) }},
		"a lost claim that came late":        {Ok, func(s *script) { s.claimLost(1); s.getNothing(); s.get(a); s.claim(2, a, false) }},
		"a record that nobody made":          {Illegal, func(s *script) { s.claimLost(1); s.get(b) }},
		"a record that is gone, and unswept": {Illegal, func(s *script) { s.claim(1, a, true); s.getNothing() }},
		"a settlement and its replay":        {Ok, func(s *script) { s.claim(1, a, true); s.settle(a.Lease(), done("paid"), nil); s.get(paid) }},
		"a settlement twice": {Ok, func(s *script) {
			s.claim(1, a, true)
			s.settle(a.Lease(), done("paid"), nil)
			s.settle(a.Lease(), done("paid"), nil)
		}},
		"two outcomes": {Illegal, func(s *script) {
			s.claim(1, a, true)
			s.settle(a.Lease(), done("paid"), nil)
			s.settle(a.Lease(), done("other"), nil)
		}},
		"another outcome than was settled":            {Illegal, func(s *script) { s.claim(1, a, true); s.settle(a.Lease(), done("other"), nil); s.get(paid) }},
		"a settlement that was acknowledged and lost": {Illegal, func(s *script) { s.claim(1, a, true); s.settle(a.Lease(), done("paid"), nil); s.get(a) }},
		"a lost settlement, seen or not":              {Ok, func(s *script) { s.claim(1, a, true); s.settleLost(a.Lease(), done("paid")); s.get(a); s.get(paid) }},
		"a settlement undone":                         {Illegal, func(s *script) { s.claim(1, a, true); s.settleLost(a.Lease(), done("paid")); s.get(paid); s.get(a) }},
		"a stranger's settlement":                     {Illegal, func(s *script) { s.claim(1, a, true); s.settle(b.Lease(), done("paid"), nil) }},
		"an owner's settlement refused":               {Illegal, func(s *script) { s.claim(1, a, true); s.settle(a.Lease(), done("paid"), store.ErrLeaseLost) }},
		"a renewal is read":                           {Ok, func(s *script) { s.claim(1, a, true); s.renew(a.Lease(), nil); s.get(renewed) }},
		"a renewal that is not read":                  {Illegal, func(s *script) { s.claim(1, a, true); s.renew(a.Lease(), nil); s.get(a) }},
		"an owner's renewal refused":                  {Illegal, func(s *script) { s.claim(1, a, true); s.renew(a.Lease(), store.ErrLeaseLost) }},
		"a stranger's renewal":                        {Illegal, func(s *script) { s.claim(1, a, true); s.renew(b.Lease(), nil) }},
		"a swap of what was seen": {Ok, func(s *script) {
			s.claim(1, a, true)
			in, r := taken(a, 2, at(3))
			s.call(in, &Answer{Found: store.Found{Record: r, Won: true}})
			s.settle(a.Lease(), done("paid"), store.ErrLeaseLost)
		}},
		"a zombie's settlement": {Illegal, func(s *script) {
			s.claim(1, a, true)
			in, r := taken(a, 2, at(3))
			s.call(in, &Answer{Found: store.Found{Record: r, Won: true}})
			s.settle(a.Lease(), done("paid"), nil)
		}},
		"a swap of a lease that was renewed meanwhile": {Illegal, func(s *script) {
			s.claim(1, a, true)
			s.renew(a.Lease(), nil)
			s.get(renewed)
			in, r := taken(a, 2, at(3))
			s.call(in, &Answer{Found: store.Found{Record: r, Won: true}})
		}},
		"a swap that keeps the fence": {Illegal, func(s *script) {
			s.claim(1, a, true)
			in, r := taken(a, 2, at(3))
			r.Fence = a.Fence
			s.call(in, &Answer{Found: store.Found{Record: r, Won: true}})
		}},
		"a swap of nothing": {Illegal, func(s *script) {
			in, r := taken(a, 2, at(3))
			s.call(in, &Answer{Found: store.Found{Record: r, Won: true}})
		}},
		"a sweep removes what has expired": {Ok, func(s *script) {
			s.claim(1, a, true)
			s.settle(a.Lease(), done("paid"), nil)
			s.get(paid)
			s.sweep(at(6))
			s.getNothing()
		}},
		"a sweep removes what has not": {Illegal, func(s *script) {
			s.claim(1, a, true)
			s.settle(a.Lease(), done("paid"), nil)
			s.get(paid)
			s.sweep(at(5))
			s.getNothing()
		}},
		"a sweep removes a claim":         {Illegal, func(s *script) { s.claim(1, a, true); s.sweep(at(100)); s.getNothing() }},
		"a sweep hands back what lapsed":  {Ok, func(s *script) { s.claim(1, a, true); s.sweep(at(1), a) }},
		"a sweep hands back a live claim": {Illegal, func(s *script) { s.claim(1, a, true); s.sweep(at(0), a) }},
		"a swept key's fence comes back": {Illegal, func(s *script) {
			s.claim(1, a, true)
			s.settle(a.Lease(), done("paid"), nil)
			s.get(paid)
			s.sweep(at(6))
			r := made(2, at(7))
			r.Fence = a.Fence
			s.claim(2, r, true)
		}},
		"a time that is not the change's": {Illegal, func(s *script) { r := a; r.Until = at(9); s.claim(1, r, true) }},
	} {
		s := &script{}
		c.play(s)
		if got := Check(&s.h, time.Minute); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A message of which it is known that it had arrived takes no effect later.
func TestCheck_ArrivedOperation_NotLate(t *testing.T) {
	a := made(1, at(0))
	for _, c := range []struct {
		arrived bool
		want    Result
	}{{false, Ok}, {true, Illegal}} {
		s := &script{}
		s.claimLost(1)
		if c.arrived {
			s.h.Arrive(0, s.h.Tick())
		}
		s.getNothing()
		s.get(a)
		if got := Check(&s.h, time.Minute); got != c.want {
			t.Errorf("arrived %v: %v, want %v", c.arrived, got, c.want)
		}
	}
}

// Operations on two keys have nothing to do with each other.
func TestCheck_KeysJudgedApart(t *testing.T) {
	var h History
	for i, v := range []string{"1", "2", "1"} {
		k := store.Key{Operation: "op", Value: v}
		n := h.Call(i, h.Tick(), &Input{Kind: Get, Key: k})
		h.Return(n, h.Tick(), &Answer{Err: store.ErrNotFound})
	}
	if got := len(byKey(h.ops)); got != 2 || h.Len() != 3 {
		t.Errorf("%d parts of %d operations, want 2 of 3", got, h.Len())
	}
}

// The operations of the clients are chosen by the seed. Together they must have
// every kind of answer.
func TestRecord_ReachesEveryOperationAndResult(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(40) {
		h := Record(t.Context(), newJournaled(sound), Options{Seed: seed, Faults: 0.1})
		for _, op := range h.ops {
			in, a := op.Input.(*Input), op.Output.(*Answer)
			what := in.Kind.String()
			switch {
			case !a.Known:
				what += " unknown"
			case a.Err != nil:
				what += " refused: " + a.Err.Error()
			case a.Lapsed:
				what += " lapsed"
			case in.Kind == Claim || in.Kind == Swap:
				what += map[bool]string{true: " won", false: " not won"}[a.Found.Won]
			case in.Kind == SetTimer:
				what += map[bool]string{true: " set", false: " not set"}[a.Set]
			case in.Kind == DueTimers:
				what += map[bool]string{true: " none", false: " due"}[a.Timer.Version == store.Owner{}]
			case in.Kind == Steps && len(a.Steps) > 0:
				what += " recorded"
			}
			seen[what]++
		}
	}
	for _, want := range []string{
		"Claim won", "Claim not won", "Claim unknown", "Swap won", "Swap not won", "Swap unknown", "Swap refused: " + store.ErrNotFound.Error(),
		"Renew", "Renew unknown", "Renew refused: " + store.ErrLeaseLost.Error(), "Settle", "Settle unknown",
		"Settle refused: " + store.ErrLeaseLost.Error(), "Get", "Get refused: " + store.ErrNotFound.Error(), "Sweep", "Sweep lapsed", "Sweep unknown",
		"RecordStep", "RecordStep unknown", "RecordStep refused: " + store.ErrLeaseLost.Error(), "Steps recorded", "Steps refused: " + store.ErrLeaseLost.Error(),
		"SetTimer set", "SetTimer not set", "SetTimer unknown", "DropTimer", "DropTimer unknown", "DueTimers due", "DueTimers none",
	} {
		if seen[want] == 0 {
			t.Errorf("never: %s; seen %v", want, seen)
		}
	}
}
