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

// eachLedger runs a test by keys and by offsets.
func eachLedger(t *testing.T, test func(t *testing.T, p *shop, form string)) {
	for _, form := range []string{"keys", "offsets"} {
		t.Run(form, func(t *testing.T) { test(t, newShop(t), form) })
	}
}

// member is the ledger of a member of the consumer group.
type member struct {
	semelkafka.Ledger
	markers *crashMarkers
	handler *Handler
}

func (p *shop) member(t *testing.T, form string, maxAttempts int) member {
	t.Helper()
	if form == "keys" {
		l := p.keyed(t, maxAttempts)
		return member{l, &l.markers, &l.handler}
	}
	l := p.offsets(maxAttempts)
	return member{l, &l.markers, &l.handler}
}

// own assigns the partition to the member. No offset was committed to Kafka.
func (m member) own(t *testing.T) member {
	t.Helper()
	if _, _, err := m.Own(t.Context(), orders, 0); err != nil {
		t.Fatal(err)
	}
	return m
}

// otherProcess is the shop with connections of its own, as in another process.
func (p *shop) otherProcess(t *testing.T) *shop {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.URL(t)+"&pool_max_conns=4")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	q := &shop{pool: pool, effectTable: p.effectTable, watermarkTable: p.watermarkTable, errs: p.errs}
	q.store, err = pgstore.New(t.Context(), pool, &pgstore.Options{Schema: p.schema(), NoMigrate: true, Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.store.Close() })
	return q
}

func (p *shop) schema() string {
	return strings.Trim(strings.TrimSuffix(p.effectTable, `."effect"`), `"`)
}

func (p *shop) markerTable() string {
	return strings.Replace(p.watermarkTable, "semel_watermark", "semel_crash_marker", 1)
}

// hideMarkers renames the table of crash markers, so that no marker can be
// written or read before showMarkers.
func (p *shop) hideMarkers(ctx context.Context) error {
	_, err := p.pool.Exec(ctx, "ALTER TABLE "+p.markerTable()+" RENAME TO away")
	return err
}

func (p *shop) showMarkers(t *testing.T) {
	t.Helper()
	p.exec(t, "ALTER TABLE "+strings.Replace(p.markerTable(), "semel_crash_marker", "away", 1)+" RENAME TO semel_crash_marker")
}

// frozen is a member that is stopped inside its handler.
type frozen struct {
	connection uint32   // the server's process of its transaction
	bodies     []string // of the messages that the handler got
	wake       func()
	results    chan []driver.Result
}

// freeze handles a batch in another process, and stops it in the handler of the
// message with the given body.
func (p *shop) freeze(t *testing.T, form string, maxAttempts int, batch []semelkafka.Item, body string) frozen {
	t.Helper()
	q := p.otherProcess(t)
	m := q.member(t, form, maxAttempts).own(t)
	reached, resumed := make(chan frozen, 1), make(chan struct{})
	*m.handler = func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		if err := q.write(ctx, tx, ms); err != nil {
			return err
		}
		if slices.ContainsFunc(ms, func(m *consume.Message) bool { return string(m.Body) == body }) {
			reached <- frozen{connection: tx.Conn().PgConn().PID(), bodies: strings.Fields(q.runs[len(q.runs)-1])}
			<-resumed
		}
		return nil
	}
	results := make(chan []driver.Result, 1)
	go func() { results <- m.Handle(context.WithoutCancel(t.Context()), batch) }()
	var f frozen
	select {
	case f = <-reached:
	case got := <-results:
		t.Fatalf("%q was not handled: %+v", body, got)
	}
	f.results = make(chan []driver.Result, 1)
	f.wake = func() { close(resumed); f.results <- <-results }
	return f
}

// disconnect ends the frozen member's connection, and waits until the server has
// rolled its transaction back.
func (p *shop) disconnect(t *testing.T, f frozen) {
	t.Helper()
	p.exec(t, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE pid = "+strconv.Itoa(int(f.connection)))
}

// crash handles a batch in another process, which dies in the handler of the
// message with the given body. It returns the bodies that the handler got.
func (p *shop) crash(t *testing.T, form string, maxAttempts int, batch []semelkafka.Item, body string) (bodies []string) {
	t.Helper()
	f := p.freeze(t, form, maxAttempts, batch, body)
	p.disconnect(t, f)
	t.Cleanup(func() { f.wake(); <-f.results })
	return f.bodies
}

// openTries returns the open tries in the database.
func (p *shop) openTries(t *testing.T) (tries []int64) {
	t.Helper()
	if err := p.pool.QueryRow(t.Context(), "SELECT open_tries FROM "+p.markerTable()).Scan(&tries); err != nil {
		t.Fatal(err)
	}
	return tries
}

// isolatedMember returns a member that isolates the partition, because members
// before it have begun and not ended.
func (p *shop) isolatedMember(t *testing.T, form string, maxAttempts int) member {
	t.Helper()
	for range crashThreshold - 1 {
		marker := pgkafka.NewCrashMarker(p.store, topicPartition(orders))
		if _, err := marker.Begin(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	return p.member(t, form, maxAttempts).own(t)
}
