package kafkapg

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// byBoth runs a test by keys and by offsets.
func byBoth(t *testing.T, test func(t *testing.T, p *shop, by string)) {
	for _, by := range []string{"keys", "offsets"} {
		t.Run(by, func(t *testing.T) { test(t, newShop(t), by) })
	}
}

// member is a ledger, and what tells its life.
type member struct {
	semelkafka.Ledger
	cares *cares
	h     *Handler
}

func (p *shop) member(t *testing.T, by string, most int) member {
	t.Helper()
	if by == "keys" {
		l := p.keyed(t, most)
		return member{l, &l.cares, &l.h}
	}
	l := p.offsets(most)
	return member{l, &l.cares, &l.h}
}

// own has the partition given to the member, as it was never committed to Kafka.
func (m member) own(t *testing.T) member {
	t.Helper()
	if _, err := m.Own(t.Context(), orders, 0); err != nil {
		t.Fatal(err)
	}
	return m
}

// elsewhere is the shop as another process sees it.
func (p *shop) elsewhere(t *testing.T) *shop {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.URL(t)+"&pool_max_conns=4")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	q := &shop{pool: pool, table: p.table, watermark: p.watermark, fails: map[string]error{}}
	q.st, err = pgstore.New(t.Context(), pool, &pgstore.Options{Schema: p.schema(), NoMigrate: true, Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.st.Close() })
	return q
}

func (p *shop) schema() string { return strings.Trim(strings.TrimSuffix(p.table, `."effect"`), `"`) }

func (p *shop) note() string { return strings.Replace(p.watermark, "semel_watermark", "semel_note", 1) }

// dying is a member whose handler is at the message that it will not survive.
type dying struct {
	pid  uint32   // of its connection
	with []string // it is in the handler with these
	wake func()
	ends chan []consume.Run
}

// freeze runs a batch in a process of its own, which stops in the handler of the
// message.
func (p *shop) freeze(t *testing.T, by string, most int, batch []semelkafka.Item, at string) dying {
	t.Helper()
	q := p.elsewhere(t)
	m := q.member(t, by, most).own(t)
	there, over := make(chan dying, 1), make(chan struct{})
	*m.h = func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		if err := q.write(ctx, tx, ms); err != nil {
			return err
		}
		if slices.ContainsFunc(ms, func(m *consume.Message) bool { return string(m.Body) == at }) {
			there <- dying{pid: tx.Conn().PgConn().PID(), with: strings.Fields(q.runs[len(q.runs)-1])}
			<-over
		}
		return nil
	}
	ends := make(chan []consume.Run, 1)
	go func() { ends <- m.Handle(context.WithoutCancel(t.Context()), batch) }()
	var d dying
	select {
	case d = <-there:
	case got := <-ends:
		t.Fatalf("%q was not handled: %+v", at, got)
	}
	d.ends = make(chan []consume.Run, 1)
	d.wake = func() { close(over); d.ends <- <-ends }
	return d
}

// kill is its end: the server has lost the connection, and nobody goes on.
func (p *shop) kill(t *testing.T, d dying) {
	t.Helper()
	p.exec(t, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid = "+strconv.Itoa(int(d.pid)))
	t.Cleanup(func() { d.wake(); <-d.ends })
}

// dies runs a batch in a process that does not survive a message, and is what was
// in the handler with it.
func (p *shop) dies(t *testing.T, by string, most int, batch []semelkafka.Item, at string) (with []string) {
	t.Helper()
	d := p.freeze(t, by, most, batch, at)
	p.kill(t, d)
	return d.with
}

// noted are the tries without an end, as the note has them.
func (p *shop) noted(t *testing.T) (tried []int64) {
	t.Helper()
	if err := p.pool.QueryRow(t.Context(), "SELECT tried FROM "+p.note()).Scan(&tried); err != nil {
		t.Fatal(err)
	}
	return tried
}

var deadly = []string{"a/o", "deadly/o", "behind/o", "other"}

// A message whose process dies with each try takes along what would count it. It
// has an end all the same, and what waits behind it goes on.
func TestAMessageThatKillsItsProcessHasAnEnd(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		const most = 3
		batch := named(deadly...)
		for life := 1; life < inVain+most; life++ {
			with := p.dies(t, by, most, batch, "deadly")
			if alone := len(with) == 1; alone != (life >= inVain) {
				t.Errorf("life %d ended with %q", life, with)
			}
		}
		p.want(t, "a")
		m := p.member(t, by, most).own(t)
		ends := m.Handle(t.Context(), batch)
		other := consume.ReasonDone
		if by == "offsets" {
			other = consume.ReasonInProgress
		}
		wantEnds(t, ends, consume.ReasonDuplicate, consume.ReasonExhausted, consume.ReasonInProgress, other)
		if ends[1].Attempt != most || !strings.Contains(ends[1].Err.Error(), "in 3 of its 3 attempts the process ended") {
			t.Errorf("attempt %d, %v", ends[1].Attempt, ends[1].Err)
		}
		if err := m.Pass(t.Context(), batch[1]); err != nil {
			t.Fatal(err)
		}
		if tried := p.noted(t); by == "offsets" && len(tried) > 0 {
			t.Errorf("passed over, it is noted: %v", tried)
		}
		again := []consume.Reason{consume.ReasonDuplicate, consume.ReasonDuplicate, consume.ReasonDone, consume.ReasonDone}
		if by == "keys" {
			again[1], again[3] = consume.ReasonExhausted, consume.ReasonDuplicate
		}
		wantEnds(t, m.Handle(t.Context(), batch), again...)
		want := []string{"a", "behind", "other"}
		if by == "keys" {
			want = []string{"a", "other", "behind"}
		}
		p.want(t, want...)
	})
}

// A partition that is given from member to member, and has no messages, tells
// nothing.
func TestAnIdlePartitionIsHandledAsEver(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		for range 2 * inVain {
			p.member(t, by, 3).own(t)
		}
		wantEnds(t, p.member(t, by, 3).own(t).Handle(t.Context(), named(deadly...)), times(consume.ReasonDone, 4)...)
		if len(p.runs) != 1 {
			t.Errorf("the runs are %q", p.runs)
		}
	})
}

// Members that end in order have not died, though none got past a message.
func TestThoseWhoEndInOrderDoNotCount(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		p.fails["a"] = errors.New("not yet")
		for range 2 * inVain {
			m := p.member(t, by, -1).own(t)
			m.Handle(t.Context(), named("a/o"))
			m.cares.end(t.Context())
		}
		delete(p.fails, "a")
		p.runs = nil
		wantEnds(t, p.member(t, by, 3).own(t).Handle(t.Context(), named(deadly...)), times(consume.ReasonDone, 4)...)
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
		for range 2 * inVain {
			m.own(t).Handle(t.Context(), named("a/o"))
		}
		delete(p.fails, "a")
		p.runs = nil
		wantEnds(t, m.own(t).Handle(t.Context(), named(deadly...)), times(consume.ReasonDone, 4)...)
		if len(p.runs) != 1 {
			t.Errorf("the runs are %q", p.runs)
		}
	})
}

// careful is a member that has to take care, for others have begun in vain.
func (p *shop) careful(t *testing.T, by string, most int) member {
	t.Helper()
	for range inVain - 1 {
		n := p.st.Note(topicPartition(orders))
		if _, err := n.Begin(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	return p.member(t, by, most).own(t)
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
				if why := consume.Decide(ends[0], nil).Reason; ends[0].Attempt != attempt || (why == consume.ReasonExhausted) != (attempt == 3) {
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
		wantEnds(t, m.Handle(t.Context(), batch[:1]), consume.ReasonDone)
		c := m.cares.known(orders)
		if c.left != careFor-1 {
			t.Errorf("care is to be taken with %d more, want %d", c.left, careFor-1)
		}
		c.left = 2
		wantEnds(t, m.Handle(t.Context(), batch), append(times(consume.ReasonDuplicate, 1), times(consume.ReasonDone, 5)...)...)
		if want := []string{"a", "b", "c", "d e f"}; !slices.Equal(p.runs, want) {
			t.Errorf("the runs are %q, want %q", p.runs, want)
		}
	})
}

// Without a limit nothing is noted, and nothing is ever given up.
func TestWithoutALimitNoTryIsNoted(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		batch := named(deadly...)
		for range inVain + 2 {
			p.dies(t, by, -1, batch, "deadly")
		}
		if tried := p.noted(t); len(tried) > 0 {
			t.Errorf("noted is %v", tried)
		}
		m := p.member(t, by, -1).own(t)
		wantEnds(t, m.Handle(t.Context(), batch), consume.ReasonDuplicate, consume.ReasonDone, consume.ReasonDone, consume.ReasonDone)
	})
}

// Care is taken with one partition, and others are handled together as ever.
func TestCareIsTakenWithOnePartition(t *testing.T) {
	byBoth(t, func(t *testing.T, p *shop, by string) {
		m := p.careful(t, by, 3)
		other, last := orders, orders
		other.Partition, last.Partition = 1, 7
		batch := slices.Concat(keyedItems(other, "o1", "o2"), named("a", "b"), keyedItems(last, "l1", "l2"))
		wantEnds(t, m.Handle(t.Context(), batch), times(consume.ReasonDone, 6)...)
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
		if err := p.st.Forget(t.Context(), orders.Group, orders.Topic); err != nil {
			t.Fatal(err)
		}
		wantEnds(t, p.member(t, by, 1).own(t).Handle(t.Context(), named("a", "b")), times(consume.ReasonDone, 2)...)
		if len(p.runs) != 1 {
			t.Errorf("the runs are %q", p.runs)
		}
	})
}
