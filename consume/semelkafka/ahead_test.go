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
func lookedAhead(t *testing.T, records int) (*batches, []*work, *dropped) {
	t.Helper()
	b, is := looping(t, nil, consume.Options{}, records), &dropped{}
	ds, _ := handed(t, b.s, records)
	works := newWorks(ds)
	b.ahead = &ahead{ds: works, items: itemsOf(works), prepared: is}
	return b, works, is
}

func TestPrepared_OtherBatch_IsDropped(t *testing.T) {
	b, works, is := lookedAhead(t, 3)
	if ds, err := b.taken(t.Context()); len(ds) != 3 || err != nil {
		t.Fatalf("%d were taken, %v", len(ds), err)
	}
	if ds, _ := b.taken(t.Context()); len(ds) != 0 {
		t.Errorf("%d were taken twice", len(ds))
	}
	for i, want := range []Prepared{is, nil} {
		if got, items := b.prepared(works); got != want || len(items) != 3 || is.times != 0 {
			t.Errorf("time %d: given %v with %d items, and dropped %d times", i, got, len(items), is.times)
		}
	}
	for name, other := range map[string]func(works []*work) []*work{
		"fewer":   func(works []*work) []*work { return works[:2] },
		"none":    func([]*work) []*work { return nil },
		"more":    func(works []*work) []*work { return append(works[:3:3], &work{delivery: &delivery{}}) },
		"another": func(works []*work) []*work { return []*work{works[0], works[1], {delivery: &delivery{}}} },
	} {
		b, works, is := lookedAhead(t, 3)
		batch := other(works)
		got, items := b.prepared(batch)
		if got != nil || is.times != 1 || len(items) != len(batch) {
			t.Errorf("%s: the prepared batch was given, or dropped %d times; %d items", name, is.times, len(items))
		}
		for i, it := range items {
			if it.Message != batch[i].it.Message {
				t.Errorf("%s: item %d is another", name, i)
			}
		}
	}
}

func TestLookAhead_Outage_GivesMessagesBack(t *testing.T) {
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

func TestLookAhead_TakesAFullBatch(t *testing.T) {
	s := apart(t, &Options{Outstanding: 5}, 8, 2)
	if n, rest := s.ready(); n != 7 || rest != 3 {
		t.Errorf("%d are ready, and %d are not; want 5 and 3 of one partition and 2 of the other", n, rest)
	}
	ds, _ := handed(t, s, 4)
	if n, _ := s.ready(); n != 7-len(ds) {
		t.Errorf("%d are ready, %d were handed out of 7", n, len(ds))
	}
}
