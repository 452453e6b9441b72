package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/table"
)

// broker hands out messages, and keeps what becomes of each.
type broker struct {
	in      chan *consume.Message
	mu      sync.Mutex
	settled map[string]string // by key
}

func newBroker(keys ...string) *broker {
	b := &broker{in: make(chan *consume.Message, len(keys)), settled: map[string]string{}}
	for _, k := range keys {
		b.in <- &consume.Message{Origin: consume.Origin{ID: k}}
	}
	return b
}

func (b *broker) Info(context.Context) (driver.Info, error) {
	return driver.Info{Horizon: time.Hour}, nil
}
func (b *broker) Stop(context.Context) error { return nil }

func (b *broker) Next(ctx context.Context, limit int) (all []driver.Delivery, err error) {
	select {
	case m := <-b.in:
		return []driver.Delivery{&brokerDelivery{b, m}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *broker) end(m *consume.Message, how string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settled[m.Origin.ID] = how
	return nil
}

const acked = "ack"

func (b *broker) outcome(key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.settled[key]
}

// settledBesides counts the settled messages, without some.
func (b *broker) settledBesides(without ...string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k := range b.settled {
		if !slices.Contains(without, k) {
			n++
		}
	}
	return n
}

// settledOf counts which of the keys are settled.
func (b *broker) settledOf(keys []string) (n int) {
	for _, k := range keys {
		if b.outcome(k) != "" {
			n++
		}
	}
	return n
}

func (b *broker) wantAllAcked(t *testing.T, form string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, how := range b.settled {
		if how != acked {
			t.Errorf("%s: %s: %s", form, k, how)
		}
	}
}

type brokerDelivery struct {
	b *broker
	m *consume.Message
}

func (d *brokerDelivery) Message() *consume.Message    { return d.m }
func (d *brokerDelivery) Revoked() <-chan struct{}     { return nil }
func (d *brokerDelivery) Extend(context.Context) error { return nil }
func (d *brokerDelivery) Ack(context.Context) error {
	if d.b.outcome(d.m.Origin.ID) != "" {
		return nil // its copy is a dead letter
	}
	return d.b.end(d.m, acked)
}

func (d *brokerDelivery) Nak(ctx context.Context, delay time.Duration) error {
	time.AfterFunc(delay, func() { d.b.in <- d.m })
	return nil
}

func (d *brokerDelivery) Forward(_ context.Context, to driver.Action, _ []store.Header) error {
	return d.b.end(d.m, to.String())
}

// charge is the call whose record has the key that testKey returns.
func charge(key string) semel.Call {
	k := testKey(key)
	return semel.Call{Operation: k.Operation, Tenant: k.Tenant, Key: k.Value, Payload: semel.NoPayload()}
}

// serve serves messages until the test ends. The handler of an Atomic writes the key into
// the shop's table. The keys of one form are not those of another.
func (p *shop) serve(t *testing.T, form string, b *broker) {
	t.Helper()
	var runner semel.Runner = p.a
	h := func(ctx context.Context, _ *semel.Execution, m *consume.Message) error {
		tx, _ := TxFrom(ctx)
		_, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ($1)", m.Origin.ID)
		return err
	}
	if form == "leased" {
		g, err := semel.New(p.s, &semel.Options{Retention: 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		runner, h = g, func(context.Context, *semel.Execution, *consume.Message) error { return nil }
	}
	keyed := func(m *consume.Message) (semel.Call, error) { return charge(m.Origin.ID), nil }
	c, err := consume.New(runner, keyed, h, &consume.Options{MaxAttempts: 3, Concurrency: 4, Backoff: func(int) time.Duration { return time.Millisecond }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Serve(ctx, b) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("%s: Serve: %v", form, err)
		}
	})
}

// messages are the keys of messages. The sixth is bad.
func messages(form string) (bad string, all []string) {
	for i := range 40 {
		all = append(all, fmt.Sprint(form, " ", i))
	}
	bad = form + " bad"
	all[5] = bad
	return bad, all
}

// release leaves the record of a failed attempt, which the next one has to write.
func (p *shop) release(t *testing.T, keys ...string) {
	t.Helper()
	for _, k := range keys {
		err := semel.Once(t.Context(), p.a, charge(k), func(context.Context, *semel.Execution) error { return errors.New("failed") })
		if r := get(t, p.s, k); r.State != store.Released {
			t.Fatalf("%s: the record is %v after %v", k, r.State, err)
		}
	}
}

// The record of one key is locked. Its message waits, and no other one does.
func TestConsumer_RowLocked_OtherMessagesAreServed(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, &Options{LockTimeout: 50 * time.Millisecond}), &semel.Options{Retention: 24 * time.Hour})
	for _, form := range []string{"leased", "Atomic"} {
		bad, keys := messages(form)
		p.release(t, bad)
		tx := beginTx(t, p.s, txDefaults)
		if tag, err := tx.Exec(t.Context(), "SELECT FROM "+p.s.quoted()+".semel_record WHERE id = $1 FOR UPDATE", table.ID(testKey(bad))); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("lock the record: %v, %v", tag, err)
		}
		b := newBroker(keys...)
		p.serve(t, form, b)
		waitFor(t, form+": the others are done", func() bool { return b.settledBesides(bad) == len(keys)-1 })
		if how := b.outcome(bad); how != "" {
			t.Errorf("%s: the message whose record is locked: %s", form, how)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		waitFor(t, form+": the message is done", func() bool { return b.outcome(bad) != "" })
		b.wantAllAcked(t, form)
	}
}

// One partition of the records is detached. Messages whose records are in the others are
// served, and the rest once it is there again. No message is dead-lettered.
func TestConsumer_PartitionDetached_OtherMessagesAreServed(t *testing.T) {
	t.Parallel()
	p := newShop(t, openNew(t, &Options{Partitions: 4}), &semel.Options{Retention: 24 * time.Hour})
	for _, form := range []string{"leased", "Atomic"} {
		bad, keys := messages(form)
		p.release(t, keys...)
		partition := func(key string) string {
			return ask[string](t, p.s.appPool, "SELECT tableoid::regclass::text FROM "+p.s.quoted()+".semel_record WHERE id = $1", table.ID(testKey(key)))
		}
		gone, others := partition(bad), []string{}
		for _, k := range keys {
			if partition(k) != gone {
				others = append(others, k)
			}
		}
		bound := ask[string](t, p.s.appPool, "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE oid = $1::regclass", gone)
		mustExec(t, p.s.appPool, "ALTER TABLE "+p.s.quoted()+".semel_record DETACH PARTITION "+gone)
		_, err := p.s.Claim(t.Context(), proposal(bad))
		if store.Affects(err) != store.ExtentPart {
			t.Errorf("%s: a claim in the detached partition: %v, extent %v", form, err, store.Affects(err))
		}
		b := newBroker(keys...)
		p.serve(t, form, b)
		waitFor(t, form+": the messages of other partitions are done", func() bool { return b.settledOf(others) == len(others) })
		if n := b.settledBesides(); n != len(others) {
			t.Errorf("%s: %d messages are settled, and %d can be", form, n, len(others))
		}
		mustExec(t, p.s.appPool, "ALTER TABLE "+p.s.quoted()+".semel_record ATTACH PARTITION "+gone+" "+bound)
		waitFor(t, form+": all are done", func() bool { return b.settledBesides() == len(keys) })
		b.wantAllAcked(t, form)
	}
}

// A trigger refuses the COMMIT of one message, with codes that a server in trouble gives
// too. The message is dead-lettered after its attempts, and no other one waits.
func TestConsumer_CommitRefused_DeadLettersThatMessageOnly(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"53400", "53100", "55P03", "57P01", "08006", "40001", "25006", "XX000"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			p := newShop(t, openNew(t, nil), &semel.Options{Retention: 24 * time.Hour})
			bad, keys := messages("Atomic")
			fn := p.s.quoted() + ".refuse()"
			mustExec(t, p.s.appPool, "CREATE FUNCTION "+fn+" RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '"+code+"'; END $$")
			mustExec(t, p.s.appPool, "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON "+p.table+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.key = '"+bad+"') EXECUTE FUNCTION "+fn)
			b := newBroker(keys...)
			p.serve(t, "Atomic", b)
			waitFor(t, "all are settled", func() bool { return b.settledBesides() == len(keys) })
			if how := b.outcome(bad); how != driver.DeadLetter.String() {
				t.Errorf("the message whose COMMIT is refused: %s", how)
			}
			b.mu.Lock()
			b.settled[bad] = acked
			b.mu.Unlock()
			b.wantAllAcked(t, "the others")
		})
	}
}
