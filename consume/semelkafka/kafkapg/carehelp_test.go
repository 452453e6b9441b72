package kafkapg

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
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
	q := &shop{pool: pool, table: p.table, watermark: p.watermark, fails: p.fails}
	q.st, err = pgstore.New(t.Context(), pool, &pgstore.Options{Schema: p.schema(), NoMigrate: true, Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.st.Close() })
	return q
}

func (p *shop) schema() string { return strings.Trim(strings.TrimSuffix(p.table, `."effect"`), `"`) }

func (p *shop) note() string {
	return strings.Replace(p.watermark, "semel_watermark", "semel_crash_marker", 1)
}

// dying is a member whose handler is at the message that it will not survive.
type dying struct {
	pid  uint32   // of its connection
	with []string // it is in the handler with these
	wake func()
	ends chan []driver.Result
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
	ends := make(chan []driver.Result, 1)
	go func() { ends <- m.Handle(context.WithoutCancel(t.Context()), batch) }()
	var d dying
	select {
	case d = <-there:
	case got := <-ends:
		t.Fatalf("%q was not handled: %+v", at, got)
	}
	d.ends = make(chan []driver.Result, 1)
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
	if err := p.pool.QueryRow(t.Context(), "SELECT open_tries FROM "+p.note()).Scan(&tried); err != nil {
		t.Fatal(err)
	}
	return tried
}

// careful is a member that has to take care, for others have begun in vain.
func (p *shop) careful(t *testing.T, by string, most int) member {
	t.Helper()
	for range crashThreshold - 1 {
		n := pgkafka.NewCrashMarker(p.st, topicPartition(orders))
		if _, err := n.Begin(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	return p.member(t, by, most).own(t)
}
