package semelkafka

import (
	"context"
	"testing"

	"github.com/semel-go/semel/consume"
)

// dropped is a Prepared that counts how often it was dropped.
type dropped struct {
	Prepared
	times int
}

func (d *dropped) Drop() { d.times++ }

// lookedAhead are batches of which one of some records is prepared.
func lookedAhead(t *testing.T, records int) (*batches, []Item, *dropped) {
	t.Helper()
	s := apart(t, nil, records)
	ds, _ := handed(t, s, records)
	a := &ahead{ds: newWorks(ds)}
	for _, w := range a.ds {
		a.items = append(a.items, w.it)
	}
	is := &dropped{}
	a.is = is
	return &batches{s: s, held: map[string]*heldLane{}, ahead: a}, a.items, is
}

func TestWhatIsPreparedIsForThatBatchAlone(t *testing.T) {
	b, items, is := lookedAhead(t, 3)
	if ds, err := b.taken(t.Context()); len(ds) != 3 || err != nil {
		t.Fatalf("%d were taken, %v", len(ds), err)
	}
	if ds, _ := b.taken(t.Context()); len(ds) != 0 {
		t.Errorf("%d were taken twice", len(ds))
	}
	if b.prepared(items) != Prepared(is) || is.times != 0 || b.prepared(items) != nil {
		t.Error("the batch is not given once")
	}
	for name, other := range map[string][]Item{"fewer": items[:2], "none": nil, "more": append(items[:3:3], Item{Message: &consume.Message{}}), "another": {items[0], items[1], {Message: &consume.Message{}}}} {
		b, _, is := lookedAhead(t, 3)
		if got := b.prepared(other); got != nil || is.times != 1 {
			t.Errorf("%s: the prepared batch was given, or dropped %d times", name, is.times)
		}
	}
}

func TestWhatIsTakenAheadIsGivenBack(t *testing.T) {
	for name, end := range map[string]func(b *batches){
		"the loop ended": func(b *batches) { b.giveUp(context.Background()) },
		"an outage": func(b *batches) {
			b.outage = true
			if ds, err := b.taken(context.Background()); len(ds) > 0 || err != nil {
				t.Errorf("%d are taken, %v", len(ds), err)
			}
			b.prepared(nil)
		},
	} {
		b, _, is := lookedAhead(t, 3)
		end(b)
		if ds, _ := handed(t, b.s, 10); len(ds) != 3 || is.times != 1 {
			t.Errorf("%s: %d are given again, and dropped %d times", name, len(ds), is.times)
		}
	}
}

func TestALookAheadTakesAFullBatch(t *testing.T) {
	s := apart(t, &Options{Outstanding: 5}, 8, 2)
	if n, rest := s.ready(); n != 7 || rest != 3 {
		t.Errorf("%d are ready, and %d are not; want 5 and 3 of one partition and 2 of the other", n, rest)
	}
	ds, _ := handed(t, s, 4)
	if n, _ := s.ready(); n != 7-len(ds) {
		t.Errorf("%d are ready, %d were handed out of 7", n, len(ds))
	}
}
