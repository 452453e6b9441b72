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

// deadly are messages of which the second one kills its process in some tests.
var deadly = []string{"a/o", "deadly/o", "later/o", "other"}

// A message kills its process in each try, so no transaction can count the tries.
// It becomes a dead letter nevertheless, and later messages run.
func TestCrash_MessageKillsItsProcess_EndsAfterMaxAttempts(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		const maxAttempts = 3
		batch := named(deadly...)
		for n := 1; n < crashThreshold+maxAttempts; n++ {
			bodies := p.crash(t, form, maxAttempts, batch, "deadly")
			if alone := len(bodies) == 1; alone != (n >= crashThreshold) {
				t.Errorf("member %d died while it handled %q", n, bodies)
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
		if tries := p.openTries(t); form == "offsets" && len(tries) > 0 {
			t.Errorf("after Pass the open tries are %v, want none", tries)
		}
		again := []driver.Reason{driver.ReasonDuplicate, driver.ReasonDuplicate, driver.ReasonDone, driver.ReasonDone}
		if form == "keys" {
			again[1], again[3] = driver.ReasonExhausted, driver.ReasonDuplicate
		}
		wantReasons(t, m.Handle(t.Context(), batch), again...)
		want := []string{"a", "later", "other"}
		if form == "keys" {
			want = []string{"a", "other", "later"}
		}
		p.wantEffects(t, want...)
	})
}

// Two messages kill their process, and an earlier message is tried again each
// time. Each message has its own open tries, which stay when another message ends.
func TestCrash_TwoMessagesKill_EachHasItsOwnTries(t *testing.T) {
	p := newShop(t)
	const maxAttempts = 2
	p.errs["flaky"] = semel.NoEffect(errors.New("not yet"))
	batch := named("flaky/f", "first/o", "second/p", "other")
	for range crashThreshold - 1 + maxAttempts {
		p.crash(t, "keys", maxAttempts, batch, "first")
	}
	for n := range maxAttempts {
		if bodies := p.crash(t, "keys", maxAttempts, batch, "second"); len(bodies) != 1 {
			t.Errorf("member %d died while it handled %q", n, bodies)
		}
	}
	const again, failed = driver.ReasonError, driver.ReasonExhausted
	wantReasons(t, p.member(t, "keys", maxAttempts).own(t).Handle(t.Context(), batch), again, failed, failed, driver.ReasonDone)
	p.wantEffects(t, "other")
}

// A partition without messages may be assigned to one member after another. That
// does not isolate it.
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

// Members that end in order do not count as dead, although none of them got past a
// message.
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

// A member that is assigned its partition several times counts once.
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

// In an isolated partition, a message whose handler returns an error has made one
// attempt. Open tries count in addition.
func TestIsolated_HandlerFails_CountsOneAttempt(t *testing.T) {
	for crashes := range 2 {
		eachLedger(t, func(t *testing.T, p *shop, form string) {
			batch := named("a/o", "later/o")
			m := p.isolatedMember(t, form, 3)
			if crashes > 0 {
				p.crash(t, form, 3, batch, "a")
				m = p.member(t, form, 3).own(t)
			}
			p.errs["a"] = errors.New("no")
			for attempt := crashes + 1; attempt <= 3; attempt++ {
				results := m.Handle(t.Context(), batch)
				if reason := driver.Decide(results[0], driver.Policy{}).Reason; results[0].Attempt != attempt || (reason == driver.ReasonExhausted) != (attempt == 3) {
					t.Errorf("%d crashes: attempt %d, want %d: %v, %v", crashes, results[0].Attempt, attempt, reason, results[0].Err)
				}
				if tries := p.openTries(t); attempt < 3 && len(tries) != 2*crashes { // an offset and a count for each message
					t.Errorf("%d crashes: the open tries are %v", crashes, tries)
				}
			}
			if len(p.runs) != 3-crashes {
				t.Errorf("%d crashes: the runs are %q", crashes, p.runs)
			}
		})
	}
}

// Isolation ends after isolatedMessages messages. Messages that were done before
// do not count.
func TestIsolated_EnoughMessagesDone_EndsIsolation(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		m := p.isolatedMember(t, form, 3)
		batch := named("a", "b", "c", "d", "e", "f")
		wantReasons(t, m.Handle(t.Context(), batch[:1]), driver.ReasonDone)
		marker := m.markers.lookup(orders)
		if marker.isolatedLeft != isolatedMessages-1 {
			t.Errorf("%d more messages are to be handled one by one, want %d", marker.isolatedLeft, isolatedMessages-1)
		}
		marker.isolatedLeft = 2
		wantReasons(t, m.Handle(t.Context(), batch), append(repeat(driver.ReasonDuplicate, 1), repeat(driver.ReasonDone, 5)...)...)
		if want := []string{"a", "b", "c", "d e f"}; !slices.Equal(p.runs, want) {
			t.Errorf("the runs are %q, want %q", p.runs, want)
		}
	})
}

// Without a limit of attempts no try is written, and no message becomes a dead
// letter because of crashes.
func TestIsolated_NoMaxAttempts_WritesNoTries(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		batch := named(deadly...)
		for range crashThreshold + 2 {
			p.crash(t, form, -1, batch, "deadly")
		}
		if tries := p.openTries(t); len(tries) > 0 {
			t.Errorf("the open tries are %v, want none", tries)
		}
		m := p.member(t, form, -1).own(t)
		wantReasons(t, m.Handle(t.Context(), batch), driver.ReasonDuplicate, driver.ReasonDone, driver.ReasonDone, driver.ReasonDone)
	})
}

// While one partition is isolated, the messages of others are handled together.
func TestIsolated_OtherPartitions_AreHandledTogether(t *testing.T) {
	eachLedger(t, func(t *testing.T, p *shop, form string) {
		m := p.isolatedMember(t, form, 3)
		other, last := orders, orders
		other.Partition, last.Partition = 1, 7
		batch := slices.Concat(namedOf(other, "o1", "o2"), named("a", "b"), namedOf(last, "l1", "l2"))
		wantReasons(t, m.Handle(t.Context(), batch), repeat(driver.ReasonDone, 6)...)
		if want := []string{"o1 o2", "a", "b", "l1 l2"}; !slices.Equal(p.runs, want) {
			t.Errorf("the runs are %q, want %q", p.runs, want)
		}
	})
}

// namedOf is named for another partition.
func namedOf(partition semelkafka.GroupPartition, names ...string) []semelkafka.Item {
	batch := named(names...)
	for i := range batch {
		batch[i].Partition, batch[i].Origin.Partition = partition, partition.Partition
	}
	return batch
}

// After pgkafka.Forget, the members that died do not count any more.
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
