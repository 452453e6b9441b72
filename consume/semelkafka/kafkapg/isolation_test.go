package kafkapg

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
)

var deadly = []string{"a/o", "deadly/o", "behind/o", "other"}

// A message whose process dies with each try takes along what would count it. It
// has an end all the same, and what waits behind it goes on.
func TestCrash_MessageKillsItsProcess_EndsAfterMaxAttempts(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		const maxAttempts = 3
		batch := named(deadly...)
		for life := 1; life < crashThreshold+maxAttempts; life++ {
			with := p.crash(t, form, maxAttempts, batch, "deadly")
			if alone := len(with) == 1; alone != (life >= crashThreshold) {
				t.Errorf("life %d ended with %q", life, with)
			}
		}
		p.wantEffects(t, "a")
		m := p.member(t, form, maxAttempts).own(t)
		results := m.Handle(t.Context(), batch)
		other := driver.ReasonDone
		if form == "offsets" {
			other = driver.ReasonInProgress
		}
		wantReasons(t, results, driver.ReasonDuplicate, driver.ReasonExhausted, driver.ReasonInProgress, other)
		if results[1].Attempt != maxAttempts || !strings.Contains(results[1].Err.Error(), "in 3 of its 3 attempts the process ended") {
			t.Errorf("attempt %d, %v", results[1].Attempt, results[1].Err)
		}
		if err := m.Pass(t.Context(), batch[1]); err != nil {
			t.Fatal(err)
		}
		if tried := p.openTries(t); form == "offsets" && len(tried) > 0 {
			t.Errorf("passed over, it is noted: %v", tried)
		}
		again := []driver.Reason{driver.ReasonDuplicate, driver.ReasonDuplicate, driver.ReasonDone, driver.ReasonDone}
		if form == "keys" {
			again[1], again[3] = driver.ReasonExhausted, driver.ReasonDuplicate
		}
		wantReasons(t, m.Handle(t.Context(), batch), again...)
		want := []string{"a", "behind", "other"}
		if form == "keys" {
			want = []string{"a", "other", "behind"}
		}
		p.wantEffects(t, want...)
	})
}

// Two messages kill, and one before them comes again and again: the tries of each
// are its own, and those of one outlive the other's.
func TestCrash_TwoMessagesKill_EachHasItsOwnTries(t *testing.T) {
	p := newShop(t)
	const maxAttempts = 2
	p.errs["flaky"] = semel.NoEffect(errors.New("not yet"))
	batch := named("flaky/f", "first/o", "second/p", "other")
	for range crashThreshold - 1 + maxAttempts {
		p.crash(t, "keys", maxAttempts, batch, "first")
	}
	for life := range maxAttempts {
		if with := p.crash(t, "keys", maxAttempts, batch, "second"); len(with) != 1 {
			t.Errorf("life %d ended with %q", life, with)
		}
	}
	const again, failed = driver.ReasonError, driver.ReasonExhausted
	wantReasons(t, p.member(t, "keys", maxAttempts).own(t).Handle(t.Context(), batch), again, failed, failed, driver.ReasonDone)
	p.wantEffects(t, "other")
}

// A partition that is given from member to member, and has no messages, tells
// nothing.
func TestCrash_IdlePartitionChangesOwners_IsNotIsolated(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		for range 2 * crashThreshold {
			p.member(t, form, 3).own(t)
		}
		wantReasons(t, p.member(t, form, 3).own(t).Handle(t.Context(), named(deadly...)), repeat(driver.ReasonDone, 4)...)
		if len(p.runs) != 1 {
			t.Errorf("the runs are %q", p.runs)
		}
	})
}

// Members that end in order have not died, though none got past a message.
func TestCrash_MembersEndInOrder_IsNotIsolated(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		p.errs["a"] = errors.New("not yet")
		for range 2 * crashThreshold {
			m := p.member(t, form, -1).own(t)
			m.Handle(t.Context(), named("a/o"))
			m.markers.end(t.Context())
		}
		delete(p.errs, "a")
		p.runs = nil
		wantReasons(t, p.member(t, form, 3).own(t).Handle(t.Context(), named(deadly...)), repeat(driver.ReasonDone, 4)...)
		if len(p.runs) != 1 {
			t.Errorf("the runs are %q", p.runs)
		}
	})
}

// A member keeps its partition, or is given it again: it counts once.
func TestCrash_OneMemberBeginsAgain_IsNotIsolated(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		p.errs["a"] = errors.New("not yet")
		m := p.member(t, form, -1)
		for range 2 * crashThreshold {
			m.own(t).Handle(t.Context(), named("a/o"))
		}
		delete(p.errs, "a")
		p.runs = nil
		wantReasons(t, m.own(t).Handle(t.Context(), named(deadly...)), repeat(driver.ReasonDone, 4)...)
		if len(p.runs) != 1 {
			t.Errorf("the runs are %q", p.runs)
		}
	})
}

// A message that fails in an ordinary way has the attempts that it has without
// care, and the tries that had no end besides.
func TestIsolated_HandlerFails_CountsOneAttempt(t *testing.T) {
	for died := range 2 {
		eachLedger(t, func(t *testing.T, p *shop, form string) {
			batch := named("a/o", "behind/o")
			m := p.isolatedMember(t, form, 3)
			if died > 0 {
				p.crash(t, form, 3, batch, "a")
				m = p.member(t, form, 3).own(t)
			}
			p.errs["a"] = errors.New("no")
			for attempt := died + 1; attempt <= 3; attempt++ {
				results := m.Handle(t.Context(), batch)
				if why := driver.Decide(results[0], driver.Policy{}).Reason; results[0].Attempt != attempt || (why == driver.ReasonExhausted) != (attempt == 3) {
					t.Errorf("%d died: attempt %d, want %d: %v, %v", died, results[0].Attempt, attempt, why, results[0].Err)
				}
				if tried := p.openTries(t); attempt < 3 && len(tried) != 2*died {
					t.Errorf("%d died: noted is %v", died, tried)
				}
			}
			if len(p.runs) != 3-died {
				t.Errorf("%d died: the runs are %q", died, p.runs)
			}
		})
	}
}

// Care ends behind as many messages as were in the transactions that died; what
// was done before does not count.
func TestIsolated_EnoughMessagesDone_EndsIsolation(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		m := p.isolatedMember(t, form, 3)
		batch := named("a", "b", "c", "d", "e", "f")
		wantReasons(t, m.Handle(t.Context(), batch[:1]), driver.ReasonDone)
		c := m.markers.lookup(orders)
		if c.isolated != isolatedMessages-1 {
			t.Errorf("care is to be taken with %d more, want %d", c.isolated, isolatedMessages-1)
		}
		c.isolated = 2
		wantReasons(t, m.Handle(t.Context(), batch), append(repeat(driver.ReasonDuplicate, 1), repeat(driver.ReasonDone, 5)...)...)
		if want := []string{"a", "b", "c", "d e f"}; !slices.Equal(p.runs, want) {
			t.Errorf("the runs are %q, want %q", p.runs, want)
		}
	})
}

// Without a limit nothing is noted, and nothing is ever given up.
func TestIsolated_NoMaxAttempts_WritesNoTries(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		batch := named(deadly...)
		for range crashThreshold + 2 {
			p.crash(t, form, -1, batch, "deadly")
		}
		if tried := p.openTries(t); len(tried) > 0 {
			t.Errorf("noted is %v", tried)
		}
		m := p.member(t, form, -1).own(t)
		wantReasons(t, m.Handle(t.Context(), batch), driver.ReasonDuplicate, driver.ReasonDone, driver.ReasonDone, driver.ReasonDone)
	})
}

// Care is taken with one partition, and others are handled together as ever.
func TestIsolated_OtherPartitions_AreHandledTogether(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		m := p.isolatedMember(t, form, 3)
		other, last := orders, orders
		other.Partition, last.Partition = 1, 7
		batch := slices.Concat(keyedItems(other, "o1", "o2"), named("a", "b"), keyedItems(last, "l1", "l2"))
		wantReasons(t, m.Handle(t.Context(), batch), repeat(driver.ReasonDone, 6)...)
		if want := []string{"o1 o2", "a", "b", "l1 l2"}; !slices.Equal(p.runs, want) {
			t.Errorf("the runs are %q, want %q", p.runs, want)
		}
	})
}

// keyedItems are those of another partition.
func keyedItems(of semelkafka.Place, names ...string) []semelkafka.Item {
	batch := named(names...)
	for i := range batch {
		batch[i].Place, batch[i].Origin.Partition = of, of.Partition
	}
	return batch
}

// The topic is made anew, or its watermarks are forgotten: nobody has died there.
func TestCrash_WatermarksForgotten_IsNotIsolated(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		p.isolatedMember(t, form, 1)
		p.crash(t, form, 1, named("a"), "a")
		if err := pgkafka.Forget(t.Context(), p.store, orders.Group, orders.Topic); err != nil {
			t.Fatal(err)
		}
		wantReasons(t, p.member(t, form, 1).own(t).Handle(t.Context(), named("a", "b")), repeat(driver.ReasonDone, 2)...)
		if len(p.runs) != 1 {
			t.Errorf("the runs are %q", p.runs)
		}
	})
}
