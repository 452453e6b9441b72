package kafkapg

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/consume/semelkafka"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/pgkafka"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func openOffsets(t *testing.T, h Handler) *offsetsLedger {
	t.Helper()
	st, err := pgstore.Open(t.Context(), pgtest.URL(t), &pgstore.Options{Schema: newSchema()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return newOffsetsLedger(st, h, defaultMaxAttempts)
}

func nothing(context.Context, pgx.Tx, []*consume.Message) error { return nil }

// Messages between the watermark and a message were never read. They must not
// count as done.
func TestOffsets_GapInBatch_WatermarkStops(t *testing.T) {
	l := openOffsets(t, nothing)
	if _, _, err := l.Own(t.Context(), orders, 5); err != nil {
		t.Fatal(err)
	}
	for _, r := range l.Handle(t.Context(), append(items(5, 7), items(8, 10)...))[2:] {
		if !errors.Is(r.Err, semel.ErrUnavailable) {
			t.Errorf("after a gap: %v", r.Err)
		}
	}
	compacted := items(9, 10)
	compacted[0].From = 7 // Kafka has removed 7 and 8 by compaction
	for _, r := range l.Handle(t.Context(), compacted) {
		if r.Err != nil {
			t.Errorf("after removed messages: %v", r.Err)
		}
	}
	if next, _, err := l.Own(t.Context(), orders, 0); err != nil || next != 10 {
		t.Errorf("the watermark is at %d, %v; want 10", next, err)
	}
	for i, r := range l.Handle(t.Context(), items(8, 11)) {
		if r.Err != nil || r.Replayed != (i < 2) {
			t.Errorf("offset %d: replayed %v, %v", 8+i, r.Replayed, r.Err)
		}
	}
}

// An earlier owner of a partition is refused. If it still gets messages of the
// partition after that, it owns the partition again.
func TestOffsets_EarlierOwner_IsRefused(t *testing.T) {
	handled := 0
	count := func(_ context.Context, _ pgx.Tx, ms []*consume.Message) error {
		handled += len(ms)
		return nil
	}
	first := openOffsets(t, count)
	second := newOffsetsLedger(first.store, count, defaultMaxAttempts)
	for _, l := range []*offsetsLedger{first, second} {
		if _, _, err := l.Own(t.Context(), orders, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range first.Handle(t.Context(), items(0, 3)) {
		if !errors.Is(r.Err, semel.ErrLeaseLost) || driver.Decide(r, driver.Policy{}).Action != driver.Hold {
			t.Errorf("the earlier owner: %v, want a lost lease", r.Err)
		}
	}
	for _, r := range second.Handle(t.Context(), items(0, 2)) {
		if r.Err != nil {
			t.Errorf("the new owner: %v", r.Err)
		}
	}
	for i, r := range first.Handle(t.Context(), items(0, 3)) {
		if r.Err != nil || r.Replayed != (i < 2) {
			t.Errorf("the earlier owner, again, offset %d: replayed %v, %v", i, r.Replayed, r.Err)
		}
	}
	if handled != 3+2+1 { // 3 of them were rolled back
		t.Errorf("the handlers got %d messages, want 6", handled)
	}
}

// A handler that hides the error of a statement, ends the transaction itself, or
// panics has failed: the attempts of the message are counted.
func TestOffsets_HandlerMisbehaves_MessageFails(t *testing.T) {
	for name, h := range map[string]Handler{
		"hides an error": func(ctx context.Context, tx pgx.Tx, _ []*consume.Message) error {
			_, _ = tx.Exec(ctx, "SELECT 1/0")
			return nil
		},
		"commits":    func(ctx context.Context, tx pgx.Tx, _ []*consume.Message) error { return tx.Commit(ctx) },
		"rolls back": func(ctx context.Context, tx pgx.Tx, _ []*consume.Message) error { return tx.Rollback(ctx) },
		"panics":     func(context.Context, pgx.Tx, []*consume.Message) error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			l := openOffsets(t, h)
			l.maxAttempts = 2
			if _, _, err := l.Own(t.Context(), orders, 0); err != nil {
				t.Fatal(err)
			}
			for attempt, want := range []driver.Action{driver.Retry, driver.DeadLetter} {
				results := l.Handle(t.Context(), items(0, 2))
				if d := driver.Decide(results[0], driver.Policy{}); d.Action != want || d.Attempt != attempt+1 {
					t.Errorf("attempt %d: %v, %v", d.Attempt, d.Action, d.Err)
				}
				if d := driver.Decide(results[1], driver.Policy{}); d.Action != driver.Hold {
					t.Errorf("the later message: %v, %v", d.Action, d.Err)
				}
			}
			if err := l.Pass(t.Context(), items(0, 1)[0]); err != nil {
				t.Error(err)
			}
			if next, _, err := l.Own(t.Context(), orders, 0); err != nil || next != 1 {
				t.Errorf("the watermark is at %d, %v; want 1", next, err)
			}
		})
	}
}

// A transaction with messages of several partitions moves the watermark of each
// partition.
func TestOffsets_SeveralPartitions_EachWatermarkMoves(t *testing.T) {
	p := newShop(t)
	l, other := p.offsets(defaultMaxAttempts), orders
	other.Partition = 7
	for next := int64(2); next <= 4; next += 2 {
		wantReasons(t, l.Handle(t.Context(), append(items(next-2, next), itemsOf(other, next-2, next)...)), repeat(driver.ReasonDone, 4)...)
	}
	if len(p.runs) != 2 {
		t.Errorf("the handler ran for %q", p.runs)
	}
	again := p.offsets(defaultMaxAttempts)
	wantReasons(t, again.Handle(t.Context(), append(items(0, 4), itemsOf(other, 0, 4)...)), repeat(driver.ReasonDuplicate, 8)...)
	p.wantEffects(t, "3/0", "3/1", "7/0", "7/1", "3/2", "3/3", "7/2", "7/3")
}

// A message that leaves rows open fails alone, also if the watermarks of several partitions
// would move in its transaction.
func TestOffsets_RowsLeftOpenInOnePartition_OthersMove(t *testing.T) {
	p := newShop(t)
	l, other := p.offsets(defaultMaxAttempts), orders
	other.Partition = 7
	l.handler = func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
		err := p.write(ctx, tx, ms)
		if string(ms[0].Body) == "3/0" {
			tx.QueryRow(ctx, "SELECT 1")
		}
		return err
	}
	batch := append(items(0, 2), itemsOf(other, 0, 2)...)
	wantReasons(t, l.Handle(t.Context(), batch), driver.ReasonError, driver.ReasonInProgress, driver.ReasonDone, driver.ReasonDone)
	p.wantEffects(t, "7/0", "7/1")
}

// If the server cannot write, or if the connection breaks and the server does not
// answer, no attempt is counted, however often a message is tried.
func TestOffsets_Outage_CountsNoAttempt(t *testing.T) {
	for name, fault := range map[string]func(context.Context, *shop, pgx.Tx) error{
		"disk full": func(context.Context, *shop, pgx.Tx) error {
			return fmt.Errorf("write: %w", &pgconn.PgError{Code: "53100"})
		},
		"a standby": func(ctx context.Context, p *shop, _ pgx.Tx) error {
			_, _ = p.pool.Exec(ctx, "ALTER TABLE "+p.watermarkTable+" RENAME TO away") // so that no partition can be owned
			return &pgconn.PgError{Code: "25006"}
		},
		"no connection": func(ctx context.Context, p *shop, tx pgx.Tx) error {
			_, _ = p.pool.Exec(ctx, "ALTER TABLE "+p.watermarkTable+" RENAME TO away") // so that no partition can be owned
			_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newShop(t)
			l, down := p.offsets(2), true
			l.handler = func(ctx context.Context, tx pgx.Tx, ms []*consume.Message) error {
				if down {
					return fault(ctx, p, tx)
				}
				return p.write(ctx, tx, ms)
			}
			for range 3 {
				for _, r := range l.Handle(t.Context(), items(0, 2)) {
					if d := driver.Decide(r, driver.Policy{}); d.Action != driver.Hold || d.Reason != driver.ReasonUnavailable || d.Attempt != 0 {
						t.Errorf("%v, %v, attempt %d, %v", d.Action, d.Reason, d.Attempt, d.Err)
					}
				}
			}
			if down = false; name != "disk full" {
				p.exec(t, "ALTER TABLE "+strings.Replace(p.watermarkTable, "semel_watermark", "away", 1)+" RENAME TO semel_watermark")
			}
			wantReasons(t, l.Handle(t.Context(), items(0, 2)), repeat(driver.ReasonDone, 2)...)
			p.wantEffects(t, "3/0", "3/1")
		})
	}
}

// The attempts of each message are counted separately, and stay counted if the
// partition has to be owned again.
func TestOffsets_SeveralMessagesFail_CountsEach(t *testing.T) {
	p := newShop(t)
	l, flaky := p.offsets(3), errors.New("flaky")
	p.errs["3/0"], p.errs["3/1"] = flaky, flaky
	step := func(from int64, reason driver.Reason, attempt int) {
		t.Helper()
		if d := driver.Decide(l.Handle(t.Context(), items(from, from+1))[0], driver.Policy{}); d.Reason != reason || d.Attempt != attempt {
			t.Errorf("offset %d: %v, attempt %d, %v; want %v, attempt %d", from, d.Reason, d.Attempt, d.Err, reason, attempt)
		}
	}
	step(0, driver.ReasonError, 1)
	step(0, driver.ReasonError, 2)
	delete(p.errs, "3/0")
	step(0, driver.ReasonDone, 0)
	step(1, driver.ReasonError, 1)
	l.positions[orders].watermark = nil // as after an outage
	step(1, driver.ReasonError, 2)
	step(1, driver.ReasonExhausted, 3)
	p.wantEffects(t, "3/0")
}

// The topic was deleted and created again, and another member owns the new one. A
// member that still has messages of the earlier topic ends, because it can never
// own the partition again.
func TestOffsets_TopicRecreated_EndsSource(t *testing.T) {
	p := newShop(t)
	l := p.offsets(2)
	p.errs["3/0"] = semel.Final(errors.New("no"))
	if _, _, err := l.Own(t.Context(), orders, 0); err != nil {
		t.Fatal(err)
	}
	wantReasons(t, l.Handle(t.Context(), items(0, 1)), driver.ReasonFailed)
	recreated := orders
	recreated.TopicID = "id-2"
	if err := pgkafka.Forget(t.Context(), p.store, orders.Group, orders.Topic); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.offsets(2).Own(t.Context(), recreated, 0); err != nil {
		t.Fatal(err)
	}
	if err := l.Pass(t.Context(), items(0, 1)[0]); !errors.Is(err, pgkafka.ErrFenced) {
		t.Errorf("Pass of a message of the earlier topic: %v, want ErrFenced", err)
	}
	if err := l.Pass(t.Context(), items(0, 1)[0]); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("the second Pass: %v, want ErrClosed", err)
	}
	for _, r := range l.Handle(t.Context(), items(1, 3)) {
		if !errors.Is(r.Err, driver.ErrClosed) || !errors.Is(r.Err, pgkafka.ErrRecreated) || r.FromHandler {
			t.Errorf("a message of the earlier topic: %v", r.Err)
		}
	}
	p.wantEffects(t)
}

// Messages between the watermark and a message were never read. Pass must not move
// the watermark past them either.
func TestPass_GapBeforeMessage_IsError(t *testing.T) {
	p := newShop(t)
	l := p.offsets(1)
	p.errs["3/5"] = errors.New("no")
	if _, _, err := l.Own(t.Context(), orders, 5); err != nil {
		t.Fatal(err)
	}
	wantReasons(t, l.Handle(t.Context(), items(5, 6)), driver.ReasonExhausted)
	if err := pgkafka.Forget(t.Context(), p.store, orders.Group, orders.Topic); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.offsets(1).Own(t.Context(), orders, 2); err != nil { // as if the database was restored
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Pass(t.Context(), items(5, 6)[0]); err == nil {
			t.Error("Pass moved the watermark past the messages 2 to 4")
		}
	}
	if next, _, err := l.Own(t.Context(), orders, 0); err != nil || next != 2 {
		t.Errorf("the watermark is at %d, %v; want 2", next, err)
	}
}

// If Serve's drain ends while a handler runs, and the handler returns an error, no
// attempt is counted.
func TestOffsets_HandlerInterrupted_CountsNoAttempt(t *testing.T) {
	for name, batch := range map[string][]semelkafka.Item{"alone": items(0, 1), "of many": items(0, 3)} {
		p := newShop(t)
		l := p.offsets(1)
		ctx, cancel := context.WithCancel(t.Context())
		l.handler = func(ctx context.Context, _ pgx.Tx, _ []*consume.Message) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		for i, r := range l.Handle(ctx, batch) {
			if d := driver.Decide(r, driver.Policy{}); d.Action != driver.Hold {
				t.Errorf("%s: message %d: %v, attempt %d, %v", name, i, d.Action, d.Attempt, d.Err)
			}
		}
		l.handler = p.write
		wantReasons(t, l.Handle(t.Context(), batch), repeat(driver.ReasonDone, len(batch))...)
	}
}

// Later messages wait for one that fails. Their results do not look like an outage
// of the database.
func TestOffsets_MessageFails_LaterOnesWait(t *testing.T) {
	p := newShop(t)
	l := p.offsets(2)
	p.errs["3/1"] = errors.New("no")
	for _, reason := range []driver.Reason{driver.ReasonError, driver.ReasonExhausted} {
		first := driver.ReasonDone
		if reason == driver.ReasonExhausted {
			first = driver.ReasonDuplicate
		}
		wantReasons(t, l.Handle(t.Context(), items(0, 4)), first, reason, driver.ReasonInProgress, driver.ReasonInProgress)
	}
	for range 2 { // twice, as after a lost answer
		if err := l.Pass(t.Context(), items(1, 2)[0]); err != nil {
			t.Error(err)
		}
	}
	wantReasons(t, l.Handle(t.Context(), items(2, 4)), repeat(driver.ReasonDone, 2)...)
	p.wantEffects(t, "3/0", "3/2", "3/3")
}
