package semelkafka

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// scripted is a ledger whose order keys are partitions. It says of each message how it
// ends, and notes which it was given.
type scripted struct {
	ends  map[string]driver.Result // by partition/offset; none: it is done
	pass  error
	given []string

	refused map[string]int // by partition/offset: how often Pass fails
	passed  []string
}

func (l *scripted) Own(_ context.Context, _ GroupPartition, start int64) (int64, LastMessage, error) {
	return start, LastMessage{}, nil
}

func (l *scripted) OrderKey(it Item) string { return fmt.Sprint(it.Origin.Partition) }

func (l *scripted) Handle(_ context.Context, batch []Item) []driver.Result {
	ends := make([]driver.Result, len(batch))
	for i, it := range batch {
		name := fmt.Sprintf("%d/%d", it.Origin.Partition, it.Origin.Offset)
		l.given = append(l.given, name)
		ends[i] = l.ends[name]
	}
	return ends
}

func (l *scripted) Pass(_ context.Context, it Item) error {
	name := fmt.Sprintf("%d/%d", it.Origin.Partition, it.Origin.Offset)
	if l.refused[name] > 0 {
		l.refused[name]--
		return errors.New("not now")
	}
	if l.pass == nil {
		l.passed = append(l.passed, name)
	}
	return l.pass
}

// looping is a loop of ServeBatches that takes its turns one by one.
func looping(t *testing.T, l Ledger, o consume.Options, records ...int) *batches {
	t.Helper()
	return &batches{s: apart(t, nil, records...), l: l, opt: o, held: map[string]*heldKey{}}
}

// turn is one turn of the loop, with the messages in the queues.
func (b *batches) turn(t *testing.T) {
	t.Helper()
	ds, _ := handed(t, b.s, MaxBatch)
	batch := b.gather(t.Context(), newWorks(ds))
	err := b.handle(t.Context(), batch)
	b.settleAll(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
}

// due is as if the time of all that waits had come.
func (b *batches) due() {
	for _, h := range b.held {
		h.due = time.Time{}
	}
}

// A message that has failed for good, but whose letter is refused, still comes
// before the later ones of its order key: they are not handled.
func TestSettle_LetterRefused_LaterMessagesOfTheKeyWait(t *testing.T) {
	waits := driver.Result{Err: &semel.Error{Reason: semel.ErrReleased}}
	failed := driver.Result{Err: semel.Final(errors.New("no")), FromHandler: true, Attempt: 1}
	l := &scripted{ends: map[string]driver.Result{"0/0": failed, "0/1": waits}, pass: errors.New("no answer")}
	b := looping(t, l, consume.Options{AckFailures: true}, 2, 1)
	b.turn(t)
	for range 3 {
		l.given = nil
		b.due()
		b.turn(t)
		if len(l.given) > 0 {
			t.Fatalf("the ledger was given %q, of an order key that has a message before them", l.given)
		}
	}
	l.pass, l.ends = nil, nil
	for range 2 {
		b.due()
		b.turn(t)
	}
	if len(l.given) != 1 || l.given[0] != "0/1" || len(b.held) > 0 {
		t.Errorf("when its end was taken the ledger was given %q, and %d order keys wait", l.given, len(b.held))
	}
}

// A message that waits for an earlier one of its order key is due with that one,
// however often it had to wait. Otherwise each message of an order key that fails
// would cost a second.
func TestHold_OrderKey_IsDueWithItsFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits, flaky := driver.Result{Err: &semel.Error{Reason: semel.ErrReleased}}, driver.Result{Err: errors.New("flaky"), FromHandler: true, Attempt: 1}
		l := &scripted{ends: map[string]driver.Result{"0/0": flaky, "0/1": waits, "0/2": waits}}
		b := looping(t, l, consume.Options{Backoff: func(int) time.Duration { return time.Millisecond }}, 3)
		for range 10 {
			b.turn(t)
			if d := time.Until(b.held["0"].due); d != time.Millisecond {
				t.Fatalf("the order key is due in %v", d)
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// unavailable is how a message ends for which the ledger did not answer.
var unavailable = driver.Result{Err: &semel.Error{Reason: semel.ErrUnavailable}}

// An outage ends at the latest when no message waits for it: the one that
// noticed it may belong to another member, and a retry may wait for long.
func TestOutage_ItsMessagesLeave_Ends(t *testing.T) {
	l := &scripted{ends: map[string]driver.Result{"0/0": {Err: errors.New("flaky"), FromHandler: true, Attempt: 1}, "1/0": unavailable}}
	b := looping(t, l, consume.Options{Backoff: func(int) time.Duration { return time.Hour }}, 1, 1, 0)
	b.turn(t)
	if !b.outage || len(b.held) != 2 {
		t.Fatalf("outage %v, %d order keys wait", b.outage, len(b.held))
	}
	b.s.lost(t.Context(), nil, map[string][]int32{"t": {1}})
	b.s.client = unconnected(t)
	b.s.come(2, 0, 1)
	for range 3 {
		works, err := b.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(b.gather(t.Context(), works)) > 0 {
			return
		}
	}
	t.Error("nothing is taken, though nobody waits for the ledger to answer")
}

// The source may be closed, or find that its topic was created again, while the
// ledger does not answer.
func TestOutage_SourceCloses_EndsServe(t *testing.T) {
	b := looping(t, &scripted{ends: map[string]driver.Result{"0/0": unavailable}}, consume.Options{}, 1)
	b.turn(t)
	b.s.fail(errors.New("created again"))
	if _, err := b.next(t.Context()); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("the loop goes on: %v", err)
	}
}

// A ledger says that it has ended, or that it is of another topic, also when it
// is to handle messages, or to pass over one.
func TestServeBatches_LedgerClosed_Returns(t *testing.T) {
	closed := fmt.Errorf("%w: created again", driver.ErrClosed)
	for name, l := range map[string]*scripted{
		"handle": {ends: map[string]driver.Result{"0/0": {Err: &semel.Error{Reason: semel.ErrUnavailable, Cause: closed}}}},
		"pass":   {ends: map[string]driver.Result{"0/0": {Err: semel.Final(errors.New("no")), FromHandler: true, Attempt: 1}}, pass: closed},
	} {
		b := looping(t, l, consume.Options{AckFailures: true}, 1)
		b.turn(t)
		if _, err := b.next(t.Context()); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%s: the loop goes on: %v", name, err)
		}
	}
	b := looping(t, &scripted{ends: map[string]driver.Result{"0/0": {Err: closed, FromHandler: true, Attempt: 1}}}, consume.Options{}, 1)
	b.turn(t)
	if b.s.broken != nil {
		t.Errorf("a handler's error has ended the source: %v", b.s.broken)
	}
}

// Item.From is the offset after the previous message, also over the gaps of
// compaction and transactions; for the first message it is the ledger's. It
// stays the same after a Nak.
func TestItem_From_IsAfterThePreviousMessage(t *testing.T) {
	s := apart(t, nil, 0)
	s.parts[partitionID{"t", 0}].from = 3
	for _, offset := range []int64{5, 6, 9} {
		s.come(0, offset, 1)
	}
	for range 2 {
		ds, _ := handed(t, s, 10)
		for i, w := range newWorks(ds) {
			if want := []int64{3, 6, 7}[i]; w.it.From != want {
				t.Errorf("offset %d comes behind %d, want %d", w.it.Origin.Offset, w.it.From, want)
			}
			w.m.Key = "of the first time"
			if err := w.Nak(t.Context(), 0); err != nil {
				t.Error(err)
			}
		}
		ds, _ = handed(t, s, 10)
		for _, w := range newWorks(ds) {
			if w.m.Key != "" {
				t.Errorf("offset %d comes again with the key %q", w.it.Origin.Offset, w.m.Key)
			}
			_ = w.Nak(t.Context(), 0)
		}
	}
}

// A message that is given back while its partition moves belongs to the next
// member.
func TestNak_DuringHandOver_IsNotReturnedAgain(t *testing.T) {
	s := apart(t, nil, 2)
	ds, _ := handed(t, s, 2)
	s.parts[partitionID{"t", 0}].leave()
	if err := ds[0].Nak(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if more, _ := handed(t, s, 2); len(more) > 0 {
		t.Errorf("%d messages are handed out", len(more))
	}
}

// Later messages of the order key, whose own pause is shorter, do not shorten the
// pause of a retry.
func TestHold_OrderKey_WaitsForItsRetry(t *testing.T) {
	l := &scripted{ends: map[string]driver.Result{
		"0/0": {Err: errors.New("flaky"), FromHandler: true, Attempt: 1},
		"0/1": {Err: &semel.Error{Reason: semel.ErrReleased}},
	}}
	b := looping(t, l, consume.Options{Backoff: func(int) time.Duration { return time.Hour }}, 2)
	b.turn(t)
	if h := b.held["0"]; h == nil || len(h.works) != 2 || time.Until(h.due) < time.Minute {
		t.Errorf("the order key waits until %+v", h)
	}
}

// A partition goes while its message is handled, or between two looks at what
// waits: it is given back, and neither held nor handled again.
func TestHold_PartitionRevoked_IsGivenUp(t *testing.T) {
	l := &scripted{ends: map[string]driver.Result{"0/0": {Err: errors.New("flaky"), FromHandler: true, Attempt: 1}}}
	b := looping(t, l, consume.Options{}, 1)
	ds, _ := handed(t, b.s, 1)
	batch := b.gather(t.Context(), newWorks(ds))
	p := b.s.parts[partitionID{"t", 0}]
	p.leave()
	if err := b.handle(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	b.settleAll(t.Context(), batch)
	if len(b.held) > 0 || p.unfinished > 0 {
		t.Errorf("%d order keys wait, and %d messages are unfinished", len(b.held), p.unfinished)
	}
	p.unfinished, batch[0].over = 1, false // the same delivery, once more
	if batch = b.gather(t.Context(), batch); len(batch) > 0 || p.unfinished > 0 {
		t.Errorf("%d messages of a partition that has left are handled", len(batch))
	}
}
