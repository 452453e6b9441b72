package kafkapg

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store/pgstore"
)

// newShopWith is a shop whose store has options.
func newShopWith(t *testing.T, o pgstore.Options) *shop {
	t.Helper()
	p := newShop(t)
	schema, _, _ := strings.Cut(p.effectTable, ".")
	o.Schema = strings.Trim(schema, `"`)
	st, err := pgstore.New(t.Context(), p.pool, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	p.store = st
	return p
}

// letterOf handles a batch until its last message, "bad", is a dead letter, and returns the
// text of the letter. An outage that comes in between, because the machine is busy, counts
// for nothing. The other messages are done.
func (p *shop) letterOf(t *testing.T, l *offsetsLedger, others []string) (text string) {
	t.Helper()
	batch := named(append(slices.Clone(others), "bad")...)
	for range 8 {
		results := l.Handle(t.Context(), batch)
		d := driver.Decide(results[len(others)], driver.Policy{})
		t.Logf("%v, attempt %d: %v", d.Reason, d.Attempt, d.Err)
		if d.Reason == driver.ReasonExhausted {
			if d.Attempt != l.maxAttempts {
				t.Errorf("it is a dead letter after %d attempts, want %d", d.Attempt, l.maxAttempts)
			}
			p.wantEffects(t, others...)
			return d.Err.Error()
		}
	}
	t.Fatal("the message is not dead-lettered after its attempts")
	return ""
}

// A handler leaves its transaction idle for one message until the server ends it. That is
// the fault of the handler, and not an outage, which would stop the partition for ever: the
// others are done, and the message is a dead letter whose text names the setting.
func TestOffsets_HandlerIdle_BlamesOneMessage(t *testing.T) {
	t.Parallel()
	const maxIdle = 2 * time.Second
	for name, after := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"and returns nil":                         func(context.Context, pgx.Tx) error { return nil },
		"and returns nil, and has the connection": func(context.Context, pgx.Tx) error { return nil },
		"and sends a statement": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT 1")
			return err
		},
		"and sends a statement, and hides its error": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, "SELECT 1")
			return nil
		},
		"and sends a statement on the connection": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, "SELECT 1")
			return err
		},
		"and returns an error": func(context.Context, pgx.Tx) error { return errors.New("no answer by HTTP") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newShopWith(t, pgstore.Options{MaxIdleTx: maxIdle})
			l := p.offsets(2)
			l.handler = func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
				if err := p.write(ctx, tx, ms); err != nil || string(ms[len(ms)-1].Body) != "bad" {
					return err
				}
				if strings.Contains(name, "has the connection") {
					_ = tx.Conn()
				}
				p.waitEnded(ctx, t, tx)
				return after(ctx, tx)
			}
			text := p.letterOf(t, l, []string{"a", "b"})
			if !strings.Contains(text, "pgstore.Options.MaxIdleTx, 2s") {
				t.Errorf("the dead letter does not name MaxIdleTx and its value: %s", text)
			}
		})
	}
}

// The message is in a batch with messages of another partition, whose watermark moves first.
func TestOffsets_HandlerIdle_OtherPartitionGoesOn(t *testing.T) {
	t.Parallel()
	p := newShopWith(t, pgstore.Options{MaxIdleTx: 2 * time.Second})
	l := p.offsets(2)
	l.handler = func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		err := p.write(ctx, tx, ms)
		if err == nil && string(ms[len(ms)-1].Body) == "bad" {
			p.waitEnded(ctx, t, tx)
		}
		return err
	}
	other := orders
	other.Partition = 4
	batch := append(itemsOf(other, 0, 1), named("bad")...)
	wantReasons(t, l.Handle(t.Context(), batch), driver.ReasonDone, driver.ReasonError)
	wantReasons(t, l.Handle(t.Context(), batch), driver.ReasonDuplicate, driver.ReasonExhausted)
	p.wantEffects(t, "4/0")
}

// waitEnded waits until the server has ended the connection of a transaction.
func (p *shop) waitEnded(ctx context.Context, t *testing.T, tx pgx.Tx) {
	t.Helper()
	var pid int
	if err := tx.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Error(err)
		return
	}
	for open := true; open; <-time.After(20 * time.Millisecond) {
		if err := p.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", pid).Scan(&open); err != nil {
			t.Error(err)
			return
		}
	}
}

// COMMIT of one message takes longer than StoreTimeout, because of a deferred trigger. It is
// cancelled. Because the database answers, that is an attempt of the message, and the text of
// its dead letter names the setting. The others are done.
func TestOffsets_SlowCommit_BlamesOneMessage(t *testing.T) {
	t.Parallel()
	p := newShopWith(t, pgstore.Options{StoreTimeout: 2 * time.Second})
	slow := strings.Replace(p.effectTable, "effect", "slow", 1)
	p.exec(t, "CREATE FUNCTION "+slow+"() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$")
	p.exec(t, "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON "+p.effectTable+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.body = 'bad') EXECUTE FUNCTION "+slow+"()")
	text := p.letterOf(t, p.offsets(2), []string{"a", "b"})
	if !strings.Contains(text, "within StoreTimeout, 2s") || !strings.Contains(text, "raise pgstore.Options.StoreTimeout") {
		t.Errorf("the dead letter does not name StoreTimeout, its value and the next step: %s", text)
	}
}
