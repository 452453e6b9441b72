package nearcache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/nearcache"
)

func TestMemory_MaxBytes_IsNotExceeded(t *testing.T) {
	for _, limit := range []int64{1, 2 << 10, 10 << 10, 300 << 10, 1 << 20} {
		w := newWorld(t, &nearcache.Options{MaxBytes: limit})
		rng := rand.New(rand.NewPCG(1, uint64(limit)))
		for i := range 3000 {
			f := claim(t, w, fmt.Sprint(i))
			s := settlement(time.Hour)
			s.Outcome.Body = make([]byte, rng.IntN(2000))
			if rng.IntN(50) == 0 {
				s.Outcome.Body = make([]byte, limit/4)
			}
			if err := w.Settle(t.Context(), f.Record.Lease(), s); err != nil {
				t.Fatal(err)
			}
			claim(t, w, fmt.Sprint(rng.IntN(i+1)))
			if i%100 == 0 {
				w.Check()
			}
			if b := w.Stats().Bytes; b > limit {
				t.Fatalf("%d bytes are kept, of at most %d", b, limit)
			}
		}
		w.Check()
		s := w.Stats()
		if (s.Evicted == 0) != (limit <= 2<<10) || limit >= 300<<10 && s.Bytes < limit/2 {
			t.Errorf("limit %d: %+v", limit, s)
		}
	}
}

func TestMemory_UsedRecord_StaysLonger(t *testing.T) {
	w := newWorld(t, &nearcache.Options{MaxBytes: 100 << 10})
	complete(t, w, "used", time.Hour)
	complete(t, w, "not used", time.Hour)
	for i := range 1000 {
		w.trip(t, 0, "a duplicate of what is used", func() { claim(t, w, "used") })
		complete(t, w, fmt.Sprint(i), time.Hour)
	}
	w.trip(t, 1, "a duplicate of what is not", func() { claim(t, w, "not used") })
}

func TestMemory_CallerChangesOutcome_CacheKeepsItsCopy(t *testing.T) {
	w := newWorld(t, nil)
	s := settlement(time.Hour)
	f := claim(t, w, "k")
	if err := w.Settle(t.Context(), f.Record.Lease(), s); err != nil {
		t.Fatal(err)
	}
	for range 2 { // reckoned, then read
		s.Outcome.Body[0], s.Outcome.Header[0].Value = 'X', "X"
		got := claim(t, w, "k").Record.Outcome
		_, _ = append(got.Body, '!'), append(got.Header, store.Header{})
		if !got.Equal(outcome("kept")) {
			t.Errorf("the caller changed what is kept: %+v", got)
		}
		s.Outcome = get(t, w.mem, "k").Record.Outcome.Clone()
		get(t, w, "k")
	}
}

// A connection that answers somebody else's question.
func TestClaim_StoreAnswersOtherKey_IsNotCached(t *testing.T) {
	w := newWorld(t, nil)
	complete(t, w.mem, "other", time.Hour)
	c := newCache(t, crossed{w.mem}, nil)
	claim(t, c, "k")
	get(t, c, "k")
	for _, k := range []string{"k", "other"} {
		if n := c.Stats().Hits; n != 0 || c.Stats().Records != 0 {
			t.Errorf("%q: %+v", k, c.Stats())
		}
	}
}

type crossed struct{ store.Store }

func (c crossed) Claim(ctx context.Context, _ store.Proposal) (store.Found, error) {
	return c.Store.Get(ctx, proposal("other").Key)
}
func (c crossed) Get(ctx context.Context, _ store.Key) (store.Found, error) {
	return c.Store.Get(ctx, proposal("other").Key)
}

func TestClaim_InvalidRecord_IsNotCached(t *testing.T) {
	for name, spoil := range map[string]func(r *store.Record){
		"no expiry":         func(r *store.Record) { r.Expires = time.Time{} },
		"an unknown policy": func(r *store.Record) { r.Policy = 9 },
		"an unknown state":  func(r *store.Record) { r.State = 99 },
	} {
		w := newWorld(t, nil)
		complete(t, w.mem, "k", time.Hour)
		c := newCache(t, spoilt{w.mem, spoil}, nil)
		claim(t, c, "k")
		get(t, c, "k")
		if c.Stats().Records != 0 {
			t.Errorf("a record with %s is kept", name)
		}
	}
}

type spoilt struct {
	store.Store
	spoil func(r *store.Record)
}

func (s spoilt) Get(ctx context.Context, k store.Key) (store.Found, error) {
	f, err := s.Store.Get(ctx, k)
	s.spoil(&f.Record)
	return f, err
}
func (s spoilt) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	f, err := s.Store.Claim(ctx, p)
	s.spoil(&f.Record)
	return f, err
}
