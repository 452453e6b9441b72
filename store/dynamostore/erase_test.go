package dynamostore

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/store"
)

// deletingBucket is a bucket whose objects can be deleted.
type deletingBucket struct {
	*bucket
	down bool
}

func (b *deletingBucket) Delete(ctx context.Context, name string) error {
	if b.down {
		return errors.New("the bucket is down")
	}
	_, err := b.send(ctx, http.MethodDelete, name, nil)
	return err
}

// The object of an outcome goes before its record. While it cannot be deleted, the record
// stays, so that the erasure can be repeated.
func TestErase_OutcomeInObject_DeletesObjectFirst(t *testing.T) {
	t.Parallel()
	c := newStandingClock()
	s, b, g := openObjects(t, Options{now: c.read, noSkew: true})
	ran := 0
	if _, err := runLarge(t, g, "large", noise(40_000), &ran); err != nil || len(b.made()) != 1 {
		t.Fatal(b.made(), err)
	}
	c.advance(time.Second)
	run := func(o Objects) (r erase.Report, why error) {
		t.Helper()
		opt := s.opt
		opt.Objects = o
		st := openAgain(t, s, &opt)
		r, err := erase.Run(t.Context(), st, erase.Scope{Tenant: testCall("").Tenant}, &erase.Options{Observe: func(_ context.Context, i erase.Item) { why = i.Err }})
		if err != nil {
			t.Fatal(err)
		}
		return r, why
	}
	for name, o := range map[string]Objects{"none": nil, "no Delete": b, "down": &deletingBucket{b, true}} {
		r, why := run(o)
		if r != (erase.Report{Failed: 1}) || why == nil || name != "down" && !strings.Contains(why.Error(), b.made()[0]) {
			t.Errorf("%s: %+v, %v; want the record left, and the name of the object", name, r, why)
		}
		if got, err := runLarge(t, g, "large", nil, &ran); err != nil || len(got) != 40_000 || ran != 1 {
			t.Errorf("%s: a duplicate got %d bytes, error %v, after %d runs", name, len(got), err, ran)
		}
	}
	if r, why := run(&deletingBucket{b, false}); r.Erased != 1 || r.Left() != 0 {
		t.Errorf("%+v, %v", r, why)
	}
	if _, err := b.Get(t.Context(), b.made()[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the object is still there: error %v", err)
	}
}

// A claim by a process whose clock is behind gets no lower fence than an erased record.
func TestErase_FenceNotYetPastEveryClock_Waits(t *testing.T) {
	t.Parallel()
	c := newStandingClock()
	s := openNew(t, &Options{IndexShards: 1, MaxSkew: time.Second, now: c.read})
	r := complete(t, s, "k", "receipt")
	for range 2 {
		if err := s.Erase(t.Context(), r.Seen()); err == nil || store.Affects(err) != store.ExtentCall || !strings.Contains(err.Error(), "too new") {
			t.Fatalf("Erase of a new record: error %v, want one that says when", err)
		}
		c.advance(time.Second)
	}
	c.advance(time.Microsecond)
	if err := s.Erase(t.Context(), r.Seen()); err != nil {
		t.Fatal(err)
	}
	behind := s.opt
	behind.now = func() time.Time { return c.read().Add(-time.Second) }
	f, err := openAgain(t, s, &behind).Claim(t.Context(), proposal("k"))
	if err != nil || f.Record.Fence <= r.Fence {
		t.Errorf("the fence was %d, and of a claim by a clock that is behind it is %d, error %v", r.Fence, f.Record.Fence, err)
	}
}
