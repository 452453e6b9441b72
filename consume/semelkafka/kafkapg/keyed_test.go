package kafkapg

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// shop is a schema with the tables of Semel, and one for effects.
type shop struct {
	pool  *pgxpool.Pool
	st    *pgstore.Store
	table string
	// watermark is the table of watermarks.
	watermark string
	fails     map[string]error // what write returns for a message, once it has written all
	runs      []string         // the messages of each run of write
}

func newShop(t *testing.T) *shop {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	schema := newSchema()
	st, err := pgstore.New(t.Context(), pool, &pgstore.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	p := &shop{pool: pool, st: st, table: pgx.Identifier{schema, "effect"}.Sanitize(), watermark: pgx.Identifier{schema, "semel_watermark"}.Sanitize(), fails: map[string]error{}}
	p.exec(t, "CREATE TABLE "+p.table+" (n bigserial, body text)")
	return p
}

func (p *shop) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := p.pool.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// write is a handler: a row for each message.
func (p *shop) write(ctx context.Context, tx pgx.Tx, ms []*consume.Message) (err error) {
	bodies := make([]string, len(ms))
	for i, m := range ms {
		bodies[i] = string(m.Body)
		err = errors.Join(err, p.fails[bodies[i]])
	}
	p.runs = append(p.runs, strings.Join(bodies, " "))
	if _, werr := tx.Exec(ctx, "INSERT INTO "+p.table+" (body) SELECT unnest($1::text[])", bodies); werr != nil {
		return werr
	}
	return err
}

// want compares the effects, in the order in which they were written.
func (p *shop) want(t *testing.T, bodies ...string) {
	t.Helper()
	rows, _ := p.pool.Query(t.Context(), "SELECT body FROM "+p.table+" ORDER BY n")
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || !slices.Equal(got, bodies) {
		t.Errorf("the effects are %q, error %v; want %q", got, err, bodies)
	}
}

// offsets is a ledger of watermarks.
func (p *shop) offsets(most int) *offsets {
	return &offsets{st: p.st, h: p.write, most: most, marks: map[semelkafka.Place]*mark{}}
}

// keyed is a ledger of records.
func (p *shop) keyed(t *testing.T, most int) *keyed {
	t.Helper()
	a, err := pgstore.NewAtomic(p.st, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &keyed{a: a, prefetcher: a.Prefetcher(), call: consume.Keyed("billing", consume.FromHeader(consume.KeyHeader)), h: p.write, most: most, undone: map[string]int{}}
}

// named are messages with a body, which is their key, too, and the record key
// behind a slash. Those that begin with a minus have no key.
func named(of ...string) (batch []semelkafka.Item) {
	for i, name := range of {
		body, lane, _ := strings.Cut(name, "/")
		m := &consume.Message{OrderKey: lane, Body: []byte(body), Origin: consume.Origin{Topic: orders.Topic, Partition: orders.Partition, Offset: int64(i), ID: body}}
		if !strings.HasPrefix(body, "-") {
			m.Headers = []store.Header{{Name: consume.KeyHeader, Value: body}}
		}
		batch = append(batch, semelkafka.Item{Message: m, Place: orders, From: int64(i)})
	}
	return batch
}

// wantEnds compares what is to become of messages.
func wantEnds(t *testing.T, ends []driver.Result, want ...driver.Reason) {
	t.Helper()
	for i, r := range ends {
		if d := driver.Decide(r, driver.Policy{}); d.Reason != want[i] {
			t.Errorf("message %d: %v, attempt %d, %v; want %v", i, d.Reason, d.Attempt, d.Err, want[i])
		}
	}
}

// The server refuses what a message wrote only at COMMIT, when those behind it
// are the next to run: they wait all the same.
func TestACommitThatIsRefusedIsNotOvertaken(t *testing.T) {
	p := newShop(t)
	p.exec(t, "ALTER TABLE "+p.table+" ADD UNIQUE (body) DEFERRABLE INITIALLY DEFERRED")
	p.exec(t, "INSERT INTO "+p.table+" (body) VALUES ('twice')")
	l := p.keyed(t, 3)
	waiting := []string{"first/o", "twice/o", "behind/o", "other"}
	for round := 0; len(waiting) > 0; round++ { // as Serve does with what is held, or to be tried again
		if round == 20 {
			t.Fatalf("%q have no end", waiting)
		}
		batch := named(waiting...)
		var left []string
		for i, r := range l.Handle(t.Context(), batch) {
			switch d := driver.Decide(r, driver.Policy{}); {
			case d.Action == driver.Hold || d.Action == driver.Retry:
				left = append(left, waiting[i])
			case waiting[i] == "twice/o" && d.Reason != driver.ReasonExhausted:
				t.Errorf("what cannot commit ends with %v, %v", d.Reason, d.Err)
			case waiting[i] == "behind/o" && slices.Contains(waiting, "twice/o"):
				t.Error("one behind it was done before it")
			}
		}
		waiting = left
	}
	p.want(t, "twice", "first", "other", "behind")
}

// A message that has no call ends as that, and each of the others as its own.
func TestEndsAreThoseOfTheirMessages(t *testing.T) {
	p := newShop(t)
	p.fails["bad"] = &semel.Failure{Code: "declined"}
	p.fails["nested"] = &semel.Error{Reason: semel.ErrMismatch, Operation: "another"} // of a call that the handler made
	p.fails["busy"] = semel.NoEffect(&semel.Failure{Code: "busy"})
	l := p.keyed(t, defaultAttempts)
	batch := named("a", "-none", "bad", "b", "nested", "busy")
	wantEnds(t, l.Handle(t.Context(), batch), driver.ReasonDone, driver.ReasonNoKey, driver.ReasonFailed, driver.ReasonDone, driver.ReasonError, driver.ReasonError)
	wantEnds(t, l.Handle(t.Context(), batch), driver.ReasonDuplicate, driver.ReasonNoKey, driver.ReasonFailed, driver.ReasonDuplicate, driver.ReasonError, driver.ReasonError)
	p.want(t, "a", "b")
}

// A key is in flight elsewhere, as when a member that was frozen is still at it,
// or the CallFunc does not say what a message is: what is behind such a message
// in its lane waits, and other lanes do not.
func TestWhatComesAgainIsNotOvertaken(t *testing.T) {
	p := newShop(t)
	l := p.keyed(t, 3)
	call := l.call
	l.call = func(m *consume.Message) (semel.Call, error) {
		if string(m.Body) == "rejected" {
			return semel.Call{}, consume.ErrRejected
		}
		return call(m)
	}
	tx, err := p.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	busy, err := l.identify(named("busy")[0].Message)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.a.In(tx).Run(t.Context(), busy, func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{}, nil }); err != nil {
		t.Fatal(err)
	}
	batch := named("first/o", "busy/o", "behind/o", "free", "rejected/p", "behind that/p", "other/q")
	const done, waits = driver.ReasonDone, driver.ReasonInProgress
	wantEnds(t, l.Handle(t.Context(), batch), done, waits, waits, done, driver.ReasonRejected, waits, done)
	p.want(t, "first", "free", "other")
	wantEnds(t, l.Handle(t.Context(), named("busy/o", "behind/o", "busy/o", "behind too/o")), waits, waits, waits, waits)
	p.fails["bad"] = errors.New("bad")
	halves := named("busy/o", "bad", "x", "behind/o")
	wantEnds(t, l.Handle(t.Context(), halves), waits, driver.ReasonError, done, waits)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantEnds(t, l.Handle(t.Context(), batch[:3]), driver.ReasonDuplicate, done, done)
	p.want(t, "first", "free", "other", "x", "busy", "behind")
}

// A handler hides that a statement of it failed: that is an attempt as any other,
// and the last one ends the message, so that its lane goes on.
func TestWhatAHandlerHidesHasAnEnd(t *testing.T) {
	p := newShop(t)
	l := p.keyed(t, 3)
	l.h = func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		for _, m := range ms {
			if string(m.Body) == "bad" {
				_, _ = tx.Exec(ctx, "SELECT 1 / 0")
			}
		}
		_ = p.write(ctx, tx, ms)
		return nil
	}
	batch := named("a/o", "bad/o", "behind/o", "other")
	const done, again, waits, failed = driver.ReasonDuplicate, driver.ReasonError, driver.ReasonInProgress, driver.ReasonExhausted
	wantEnds(t, l.Handle(t.Context(), batch), driver.ReasonDone, waits, waits, driver.ReasonDone)
	for attempt, want := range []driver.Reason{again, again, failed} {
		ends := l.Handle(t.Context(), batch)
		wantEnds(t, ends, done, want, waits, done)
		if got := ends[1].Attempt; got != attempt+1 {
			t.Errorf("it is attempt %d, want %d", got, attempt+1)
		}
	}
	wantEnds(t, l.Handle(t.Context(), batch), done, failed, driver.ReasonDone, done)
	p.want(t, "a", "other", "behind")
}
