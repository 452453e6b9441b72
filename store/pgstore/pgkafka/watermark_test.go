package pgkafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

var orders = TopicPartition{Consumer: "billing", Topic: "orders", TopicID: "id-1", Partition: 3}

func own(t testing.TB, s *pgstore.Store, start int64) *Watermark {
	t.Helper()
	w, err := Own(context.Background(), s, orders, start)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// offsets writes an effect for each offset.
func (p *shop) offsets(first, next int64) func(context.Context, pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO "+p.table+" SELECT lpad(i::text, 3, '0') FROM generate_series($1::bigint, $2::bigint - 1) i", first, next)
		return err
	}
}

func TestWatermark_MovesWithEffects(t *testing.T) {
	p := newShop(t, nil)
	w := own(t, p.st, 5)
	if w.Next() != 5 {
		t.Errorf("it begins at %d, want 5", w.Next())
	}
	if err := w.Do(t.Context(), Span{First: 5, Next: 7}, p.offsets(5, 7)); err != nil || w.Next() != 7 {
		t.Errorf("at %d, error %v", w.Next(), err)
	}
	down := errors.New("down")
	err := w.Do(t.Context(), Span{First: 7, Next: 9}, func(ctx context.Context, tx pgx.Tx) error {
		return errors.Join(p.offsets(7, 9)(ctx, tx), down)
	})
	if !errors.Is(err, down) || w.Next() != 7 {
		t.Errorf("at %d, error %v", w.Next(), err)
	}
	if err := w.Do(t.Context(), Span{First: 6, Next: 9}, p.offsets(6, 9)); !errors.Is(err, ErrBehind) {
		t.Errorf("a poll that overlaps: %v, want ErrBehind", err)
	}
	if err := w.Do(t.Context(), Span{First: 8, Next: 10}, p.offsets(8, 10)); err != nil { // offset 7 was compacted away
		t.Error(err)
	}
	p.want(t, "005", "006", "008", "009")
	if again := own(t, p.st, 0); again.Next() != 10 {
		t.Errorf("the next owner begins at %d, want 10", again.Next())
	}
	other := orders
	other.Partition = 4
	if w, err := Own(t.Context(), p.st, other, 1); err != nil || w.Next() != 1 {
		t.Errorf("another partition: %v, error %v", w, err)
	}
}

// An owner has read messages, freezes, and continues after another owner has the
// partition. Its writes must not be committed.
func TestWatermark_FencedOwner_PollFails(t *testing.T) {
	p := newShop(t, nil)
	zombie := own(t, p.st, 0)
	tx := p.begin(t)
	if err := p.offsets(0, 3)(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	owner := own(t, p.st, 0)
	if err := owner.Do(t.Context(), Span{First: 0, Next: 2}, p.offsets(0, 2)); err != nil {
		t.Fatal(err)
	}
	if err := zombie.Move(t.Context(), tx, Span{First: 0, Next: 3}); !errors.Is(err, ErrFenced) {
		t.Errorf("the zombie's move: %v, want ErrFenced", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := zombie.Do(t.Context(), Span{First: 2, Next: 3}, p.offsets(2, 3)); !errors.Is(err, ErrFenced) {
		t.Errorf("the zombie's next poll: %v, want ErrFenced", err)
	}
	p.want(t, "000", "001")
}

// The old owner is about to commit. The new owner waits for the commit, and begins
// after it.
func TestOwn_CommitInFlight_Waits(t *testing.T) {
	p := newShop(t, nil)
	old := own(t, p.st, 0)
	tx := p.begin(t)
	if err := p.offsets(0, 3)(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	if err := old.Move(t.Context(), tx, Span{First: 0, Next: 3}); err != nil {
		t.Fatal(err)
	}
	got := make(chan *Watermark)
	go func() { got <- own(t, p.st, 0) }()
	waitFor(t, "the new owner waits", func() bool {
		return p.ask(t, "SELECT count(*)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%semel_watermark%'") > 0
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := <-got; w.Next() != 3 {
		t.Errorf("the new owner begins at %d, want 3", w.Next())
	}
	p.want(t, "000", "001", "002")
}

// The offsets of a recreated topic begin at 0. Skipping as many messages as were done
// of the old topic would lose them.
func TestOwn_TopicRecreated_ErrRecreated(t *testing.T) {
	p := newShop(t, nil)
	w := own(t, p.st, 0)
	nothing := func(context.Context, pgx.Tx) error { return nil }
	if err := w.Do(t.Context(), Span{First: 0, Next: 100}, nothing); err != nil {
		t.Fatal(err)
	}
	anew := orders
	anew.TopicID = "id-2"
	if _, err := Own(t.Context(), p.st, anew, 0); !errors.Is(err, ErrRecreated) {
		t.Errorf("got %v, want ErrRecreated", err)
	}
	if err := w.Do(t.Context(), Span{First: 100, Next: 101}, nothing); err != nil {
		t.Errorf("a refused owner has fenced the right one: %v", err)
	}
	if err := Forget(t.Context(), p.st, anew.Consumer, anew.Topic); err != nil {
		t.Fatal(err)
	}
	if err := w.Do(t.Context(), Span{First: 101, Next: 102}, nothing); !errors.Is(err, ErrFenced) {
		t.Errorf("a forgotten one moved: %v", err)
	}
	if w, err := Own(t.Context(), p.st, anew, 0); err != nil || w.Next() != 0 {
		t.Errorf("after Forget: %v, error %v", w, err)
	}
}

func TestWatermark_InvalidArguments_Refused(t *testing.T) {
	p := newShop(t, nil)
	for _, of := range []TopicPartition{{Topic: "t"}, {Consumer: "c"}, {Consumer: "c", Topic: "t", Partition: -1}} {
		if _, err := Own(t.Context(), p.st, of, 0); err == nil {
			t.Errorf("%+v was taken", of)
		}
	}
	if _, err := Own(t.Context(), p.st, orders, -1); err == nil {
		t.Error("a negative start was taken")
	}
	w := own(t, p.st, 0)
	for _, m := range [][2]int64{{-1, 1}, {2, 2}, {3, 2}} {
		if err := w.Do(t.Context(), Span{First: m[0], Next: m[1]}, func(context.Context, pgx.Tx) error { return nil }); err == nil {
			t.Errorf("moved from %d to %d", m[0], m[1])
		}
	}
}

// Owners that take the partition from each other all the time: each offset has
// one effect, none has two.
func TestWatermark_ManyOwners_EffectsOnce(t *testing.T) {
	p := newShop(t, nil)
	const end = 300
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			for n := int64(g + 1); ; {
				w := own(t, p.st, 0)
				for polls := 0; polls < 3; polls++ {
					first := w.Next()
					if first >= end {
						return
					}
					next := min(first+n, end)
					err := w.Do(t.Context(), Span{First: first, Next: next}, p.offsets(first, next))
					if err != nil && !errors.Is(err, ErrFenced) {
						t.Errorf("owner %d: %v", g, err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	got := p.payments(t)
	for i, key := range got {
		if want := fmt.Sprintf("%03d", i); key != want {
			t.Fatalf("effect %d is of offset %s", i, key)
		}
	}
	if len(got) != end {
		t.Errorf("%d effects of %d offsets", len(got), end)
	}
}

// A connection that is cut at the commit, without a word or with an error of a server that
// stops: Do finds out what came of it.
func TestWatermark_CommitUnanswered_OutcomeFound(t *testing.T) {
	fatal, err := (&pgproto3.ErrorResponse{Severity: "FATAL", Code: "57P01", Message: "terminating connection"}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, way := range map[string]struct {
		after bool
		last  []byte
	}{
		"after": {after: true}, "before": {}, "after, and an error": {true, fatal}, "before, and an error": {false, fatal},
	} {
		t.Run(name, func(t *testing.T) {
			after := way.after
			c, url := cuttest.New(t, pgtest.URL(t), after)
			c.Last = way.last
			p := newShop(t, nil)
			w := own(t, p.st, 0)
			w.db = through(t, w.db, url)
			for i := range int64(10) {
				c.At("commit\x00") // and not "begin isolation level read committed"
				if err := w.Do(t.Context(), Span{First: i, Next: i + 1}, p.offsets(i, i+1)); (err == nil) != after || !after && !errors.Is(err, ErrBroken) {
					t.Errorf("offset %d: %v", i, err)
				}
				if w.Next() == i {
					if err := w.Do(t.Context(), Span{First: i, Next: i + 1}, p.offsets(i, i+1)); err != nil {
						t.Errorf("offset %d again: %v", i, err)
					}
				}
			}
			if n := len(p.payments(t)); n != 10 || c.Cuts.Load() != 10 {
				t.Errorf("%d cuts, %d effects of 10 offsets", c.Cuts.Load(), n)
			}
		})
	}
}

// An owner that freezes when it has moved the watermark holds up the next one for
// a time only.
func TestWatermark_OwnerFrozen_LockReleased(t *testing.T) {
	p := newShop(t, &pgstore.Options{MaxIdleTx: time.Second, LockTimeout: 4 * time.Second})
	w := own(t, p.st, 0)
	tx := p.begin(t)
	if err := w.Move(t.Context(), tx, Span{First: 0, Next: 3}); err != nil {
		t.Fatal(err)
	}
	next, err := Own(t.Context(), p.st, orders, 0)
	if err != nil || next.Next() != 0 {
		t.Errorf("the next owner: %+v, %v", next, err)
	}
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("the frozen one has committed")
	}
}

// After Forget and a new Own, the earlier owner cannot move the new watermark.
func TestForget_OldOwner_CannotMove(t *testing.T) {
	p := newShop(t, nil)
	zombie := own(t, p.st, 5)
	if err := Forget(t.Context(), p.st, orders.Consumer, orders.Topic); err != nil {
		t.Fatal(err)
	}
	owner := own(t, p.st, 5)
	if err := zombie.Do(t.Context(), Span{First: 5, Next: 6}, p.offsets(5, 6)); !errors.Is(err, ErrFenced) {
		t.Errorf("the one before: %v, want ErrFenced", err)
	}
	if err := owner.Do(t.Context(), Span{First: 5, Next: 7}, p.offsets(5, 7)); err != nil {
		t.Errorf("the next owner: %v", err)
	}
	p.want(t, "005", "006")
}
