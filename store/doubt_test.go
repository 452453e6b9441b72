package store_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// doubtful is a store that lists records, and then fails with err unless it is nil.
type doubtful struct {
	plain
	asked store.Filter
	found []store.Found
	err   error
}

func (d *doubtful) List(_ context.Context, f store.Filter) iter.Seq2[store.Found, error] {
	d.asked = f
	return func(yield func(store.Found, error) bool) {
		for _, f := range d.found {
			if !yield(f, nil) {
				return
			}
		}
		if d.err != nil {
			yield(store.Found{}, d.err)
		}
	}
}

func TestCountInDoubt_Records_CountedAndOldest(t *testing.T) {
	d := &doubtful{}
	for _, age := range []time.Duration{time.Minute, time.Hour, time.Second} {
		r := recordIn(store.Unknown)
		r.Created, r.Updated = noon.Add(-age), noon // a reconciler has just asked
		d.found = append(d.found, store.Found{Record: r, Now: noon})
	}
	got, err := store.CountInDoubt(t.Context(), d)
	if want := (store.Doubt{Records: 3, Oldest: time.Hour}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if !d.asked.InDoubt() || d.asked.Limit != store.MaxDoubt {
		t.Errorf("asked for %+v, want at most MaxDoubt records in doubt and no others, which an index has", d.asked)
	}
	d.err = store.ErrCorrupt
	if got, err := store.CountInDoubt(t.Context(), d); err != nil || got.Records != 4 {
		t.Errorf("with an unreadable record: %+v, %v", got, err)
	}
	d.err = context.DeadlineExceeded
	if got, err := store.CountInDoubt(t.Context(), d); !errors.Is(err, context.DeadlineExceeded) || got != (store.Doubt{}) {
		t.Errorf("the store did not answer: %+v, %v", got, err)
	}
	if _, err := store.CountInDoubt(t.Context(), plain{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a store that lists nothing: %v", err)
	}
}
