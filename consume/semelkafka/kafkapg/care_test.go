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
func TestAMessageThatKillsItsProcessHasAnEnd(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		const most = 3
		batch := named(deadly...)
		for life := 1; life < crashThreshold+most; life++ {
			with := p.dies(t, by, most, batch, "deadly")
			if alone := len(with) == 1; alone != (life >= crashThreshold) {
				t.Errorf("life %d ended with %q", life, with)
			}
		}
		p.want(t, "a")
		m := p.member(t, by, most).own(t)
		ends := m.Handle(t.Context(), batch)
		other := driver.ReasonDone
		if by == "offsets" {
			other = driver.ReasonInProgress
		}
		wantEnds(t, ends, driver.ReasonDuplicate, driver.ReasonExhausted, driver.ReasonInProgress, other)
		if ends[1].Attempt != most || !strings.Contains(ends[1].Err.Error(), "in 3 of its 3 attempts the process ended") {
			t.Errorf("attempt %d, %v", ends[1].Attempt, ends[1].Err)
		}
		if err := m.Pass(t.Context(), batch[1]); err != nil {
			t.Fatal(err)
		}
		if tried := p.noted(t); by == "offsets" && len(tried) > 0 {
			t.Errorf("passed over, it is noted: %v", tried)
		}
		again := []driver.Reason{driver.ReasonDuplicate, driver.ReasonDuplicate, driver.ReasonDone, driver.ReasonDone}
		if by == "keys" {
			again[1], again[3] = driver.ReasonExhausted, driver.ReasonDuplicate
		}
		wantEnds(t, m.Handle(t.Context(), batch), again...)
		want := []string{"a", "behind", "other"}
		if by == "keys" {
			want = []string{"a", "other", "behind"}
		}
		p.want(t, want...)
	})
}

// Two messages kill, and one before them comes again and again: the tries of each
// are its own, and those of one outlive the other's.
func TestTheTriesOfMessagesAreTheirOwn(t *testing.T) {
	p := newShop(t)
	const most = 2
	p.fails["flaky"] = semel.NoEffect(errors.New("not yet"))
	batch := named("flaky/f", "first/o", "second/p", "other")
	for range crashThreshold - 1 + most {
		p.dies(t, "keys", most, batch, "first")
	}
	for life := range most {
		if with := p.dies(t, "keys", most, batch, "second"); len(with) != 1 {
			t.Errorf("life %d ended with %q", life, with)
		}
	}
	const again, failed = driver.ReasonError, driver.ReasonExhausted
	wantEnds(t, p.member(t, "keys", most).own(t).Handle(t.Context(), batch), again, failed, failed, driver.ReasonDone)
	p.want(t, "other")
}

// A partition that is given from member to member, and has no messages, tells
// nothing.
func TestAnIdlePartitionIsHandledAsEver(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		for range 2 * crashThreshold {
			p.member(t, by, 3).own(t)
		}
		wantEnds(t, p.member(t, by, 3).own(t).Handle(t.Context(), named(deadly...)), times(driver.ReasonDone, 4)...)
		if len(p.runs) != 1 {
			t.Errorf("the runs are %q", p.runs)
		}
	})
}

// Members that end in order have not died, though none got past a message.
func TestThoseWhoEndInOrderDoNotCount(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		p.fails["a"] = errors.New("not yet")
		for range 2 * crashThreshold {
			m := p.member(t, by, -1).own(t)
			m.Handle(t.Context(), named("a/o"))
			m.cares.end(t.Context())
		}
		delete(p.fails, "a")
		p.runs = nil
		wantEnds(t, p.member(t, by, 3).own(t).Handle(t.Context(), named(deadly...)), times(driver.ReasonDone, 4)...)
		if len(p.runs) != 1 {
			t.Errorf("the runs are %q", p.runs)
		}
	})
}

// A member keeps its partition, or is given it again: it counts once.
func TestAMemberCountsOnce(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		p.fails["a"] = errors.New("not yet")
		m := p.member(t, by, -1)
		for range 2 * crashThreshold {
			m.own(t).Handle(t.Context(), named("a/o"))
		}
		delete(p.fails, "a")
		p.runs = nil
		wantEnds(t, m.own(t).Handle(t.Context(), named(deadly...)), times(driver.ReasonDone, 4)...)
		if len(p.runs) != 1 {
			t.Errorf("the runs are %q", p.runs)
		}
	})
}

// A message that fails in an ordinary way has the attempts that it has without
// care, and the tries that had no end besides.
func TestAFailureIsOneAttempt(t *testing.T) {
	for died := range 2 {
		byBoth(t, func(t *testing.T, p *shop, by string) {
			batch := named("a/o", "behind/o")
			m := p.careful(t, by, 3)
			if died > 0 {
				p.dies(t, by, 3, batch, "a")
				m = p.member(t, by, 3).own(t)
			}
			p.fails["a"] = errors.New("no")
			for attempt := died + 1; attempt <= 3; attempt++ {
				ends := m.Handle(t.Context(), batch)
				if why := driver.Decide(ends[0], driver.Policy{}).Reason; ends[0].Attempt != attempt || (why == driver.ReasonExhausted) != (attempt == 3) {
					t.Errorf("%d died: attempt %d, want %d: %v, %v", died, ends[0].Attempt, attempt, why, ends[0].Err)
				}
				if tried := p.noted(t); attempt < 3 && len(tried) != 2*died {
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
func TestCareHasAnEnd(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		m := p.careful(t, by, 3)
		batch := named("a", "b", "c", "d", "e", "f")
		wantEnds(t, m.Handle(t.Context(), batch[:1]), driver.ReasonDone)
		c := m.cares.known(orders)
		if c.left != careFor-1 {
			t.Errorf("care is to be taken with %d more, want %d", c.left, careFor-1)
		}
		c.left = 2
		wantEnds(t, m.Handle(t.Context(), batch), append(times(driver.ReasonDuplicate, 1), times(driver.ReasonDone, 5)...)...)
		if want := []string{"a", "b", "c", "d e f"}; !slices.Equal(p.runs, want) {
			t.Errorf("the runs are %q, want %q", p.runs, want)
		}
	})
}

// Without a limit nothing is noted, and nothing is ever given up.
func TestWithoutALimitNoTryIsNoted(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		batch := named(deadly...)
		for range crashThreshold + 2 {
			p.dies(t, by, -1, batch, "deadly")
		}
		if tried := p.noted(t); len(tried) > 0 {
			t.Errorf("noted is %v", tried)
		}
		m := p.member(t, by, -1).own(t)
		wantEnds(t, m.Handle(t.Context(), batch), driver.ReasonDuplicate, driver.ReasonDone, driver.ReasonDone, driver.ReasonDone)
	})
}

// Care is taken with one partition, and others are handled together as ever.
func TestCareIsTakenWithOnePartition(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		m := p.careful(t, by, 3)
		other, last := orders, orders
		other.Partition, last.Partition = 1, 7
		batch := slices.Concat(keyedItems(other, "o1", "o2"), named("a", "b"), keyedItems(last, "l1", "l2"))
		wantEnds(t, m.Handle(t.Context(), batch), times(driver.ReasonDone, 6)...)
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
func TestAnotherTopicNeedsNoCare(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		p.careful(t, by, 1)
		p.dies(t, by, 1, named("a"), "a")
		if err := pgkafka.Forget(t.Context(), p.st, orders.Group, orders.Topic); err != nil {
			t.Fatal(err)
		}
		wantEnds(t, p.member(t, by, 1).own(t).Handle(t.Context(), named("a", "b")), times(driver.ReasonDone, 2)...)
		if len(p.runs) != 1 {
			t.Errorf("the runs are %q", p.runs)
		}
	})
}
