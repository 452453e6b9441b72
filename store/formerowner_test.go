package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel/store"
)

func TestFormerOwnersAfter_EachState_AddsOwner(t *testing.T) {
	for s := store.Started; s <= store.Unknown; s++ {
		r := made(s, 7, noon)
		r.Updated = noon.Add(time.Second)
		want := []store.FormerOwner{{Owner: r.Owner, Holder: "host/1", Fence: 7, Attempt: 3, State: s, Next: store.Released, Ended: r.Updated}}
		switch s {
		case store.Started: // nothing has run
			want = nil
		case store.Processing:
			want[0].Ended = r.Until
		default:
		}
		if got := r.FormerOwnersAfter(store.Released); !slices.Equal(got, want) {
			t.Errorf("%v: got %+v, want %+v", s, got, want)
		}
	}
}

func TestFormerOwnersAfter_NineOwners_KeepsLastEight(t *testing.T) {
	r := made(store.Processing, 0, noon)
	for range 9 {
		before := slices.Clone(r.FormerOwners)
		next := r
		next.FormerOwners = r.FormerOwnersAfter(store.Processing)
		next.Fence++
		if !slices.Equal(r.FormerOwners, before) {
			t.Fatal("it changed the list of the record that was read")
		}
		r = next
	}
	if n := len(r.FormerOwners); n != 8 || r.FormerOwners[0].Fence != 1 || r.FormerOwners[7].Fence != 8 {
		t.Errorf("%d former owners: %+v", n, r.FormerOwners)
	}
}

func TestFormerOwnersAfter_LongHolder_IsCutBetweenCharacters(t *testing.T) {
	r := made(store.Failed, 1, noon)
	r.Holder = "x" + strings.Repeat("é", 200)
	if h := r.FormerOwnersAfter(store.Released)[0].Holder; len(h) != 255 || !utf8.ValidString(h) || !strings.HasPrefix(r.Holder, h) {
		t.Errorf("%d bytes: %q", len(h), h)
	}
}

func TestFormerOwner_End_InWords(t *testing.T) {
	for want, pair := range map[string][2]store.State{
		"lease expired, then taken over":           {store.Processing, store.Processing},
		"lease expired, then released":             {store.Processing, store.Released},
		"lease expired, then parked":               {store.Processing, store.Unknown},
		"lease expired, then failed":               {store.Processing, store.Failed},
		"released, then claimed again":             {store.Released, store.Processing},
		"released, then reserved again":            {store.Released, store.Started},
		"released, then parked":                    {store.Released, store.Unknown},
		"failed, then reopened":                    {store.Failed, store.Released},
		"parked, then claimed again":               {store.Unknown, store.Processing},
		"parked, then resolved: it happened":       {store.Unknown, store.Completed},
		"parked, then resolved: it did not happen": {store.Unknown, store.Released},
		"parked, then resolved: it failed":         {store.Unknown, store.Failed},
	} {
		if got := (&store.FormerOwner{State: pair[0], Next: pair[1]}).End(); got != want {
			t.Errorf("%v to %v: %q, want %q", pair[0], pair[1], got, want)
		}
	}
}

func TestFormerOwners_EncodeDecode_Same(t *testing.T) {
	owners := []store.FormerOwner{
		{Owner: store.Owner{1, 0, 255}, Holder: "\x00\xff é", Fence: 1<<64 - 1, Attempt: 1<<31 - 1, State: store.Processing, Next: store.Unknown, Ended: noon},
		{State: store.Released, Next: store.Processing},
	}
	b := store.EncodeFormerOwners(owners)
	if got, err := store.DecodeFormerOwners(b); err != nil || !slices.Equal(got, owners) {
		t.Errorf("got %+v, %v", got, err)
	}
	if store.EncodeFormerOwners(nil) != nil {
		t.Error("no former owners take bytes")
	}
	one := len(store.EncodeFormerOwners(owners[:1]))
	for n := 1; n < len(b); n++ {
		if got, err := store.DecodeFormerOwners(b[:n]); n != 1 && n != one && !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("the first %d of %d bytes: %+v, %v", n, len(b), got, err)
		}
	}
	b[0]++
	if _, err := store.DecodeFormerOwners(b); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "newer") {
		t.Errorf("another format: %v", err)
	}
}
