package redisstore

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// openThrough opens a store through a proxy, and one without it on the same server.
func openThrough(t *testing.T, retries int) (through, direct *Store, p *proxy) {
	srv := redistest.Start(t, redistest.Fast...)
	p = newProxy(t, srv.Addr())
	c := redis.NewClient(&redis.Options{Addr: p.addr, MaxRetries: retries, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	through = openOn(t, c, nil)
	complete(t, through, "first", "x")
	return through, openOn(t, clientAt(t, srv.URL()), nil), p
}

// A claim, or settlement, whose reply is lost: sent again it finds its own.
func TestRequest_AnswerLost_SentAgainIsRecognized(t *testing.T) {
	t.Parallel()
	s, direct, p := openThrough(t, -1)
	for i := range 10 {
		q := proposal(itoa(i))
		p.often(1000)
		if f, err := s.Claim(t.Context(), q); err == nil {
			t.Errorf("a claim without an answer: %+v", f)
		}
		p.often(0)
		f, err := persisted(t, func() (store.Found, error) { return s.Claim(t.Context(), q) })
		if err != nil || !f.Won {
			t.Fatalf("the claim again: won %v, error %v", f.Won, err)
		}
		r := f.Record
		end := completion("x")
		for range 2 {
			if _, err := persisted(t, func() (int, error) { return 0, s.Settle(t.Context(), r.Lease(), end) }); err != nil {
				t.Errorf("the settlement, and again: %v", err)
			}
		}
		if got := get(t, direct, itoa(i)); got.State != store.Completed || got.Owner != q.Owner {
			t.Errorf("it is %v", got.State)
		}
	}
}

// persisted sends again what met a broken connection.
func persisted[T any](t *testing.T, fn func() (T, error)) (v T, err error) {
	t.Helper()
	waitFor(t, "an answer", func() bool {
		v, err = fn()
		return err == nil || errors.Is(err, store.ErrLeaseLost) || errors.Is(err, store.ErrNotFound)
	})
	return v, err
}

// Ten thousand operations through a network that cuts connections before the
// request, after it, and in the middle of the answer: each ambiguous claim is
// resolved rightly, each key has one owner and its outcome.
func TestClaim_ReplyLost_IsResolved(t *testing.T) {
	t.Parallel()
	for name, retries := range map[string]int{"the client sends again": 3, "the client does not": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, direct, p := openThrough(t, retries)
			n := 1000
			if long() {
				n = 10_000
			}
			p.often(20)
			var ops, wrong, unsure, next atomic.Int64
			each := func() bool { // fate has come
				return p.cuts[cutRequest].Load() > 0 && p.cuts[cutAnswer].Load() > 0 && p.cuts[cutWithin].Load() > 0
			}
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					for i := int(next.Add(1)); i <= n || i <= 20*n && !each(); i = int(next.Add(1)) {
						key := fmt.Sprint("op ", i-i%8/7) // one of eight is a duplicate of the one before
						q := proposal(key)
						f, err := persisted(t, func() (store.Found, error) {
							f, err := s.Claim(t.Context(), q)
							if err != nil {
								unsure.Add(1)
							}
							return f, err
						})
						ops.Add(1)
						if err != nil {
							wrong.Add(1)
							t.Errorf("%q: %v", key, err)
						}
						if !f.Won {
							continue
						}
						_, err = persisted(t, func() (int, error) {
							return 0, s.Settle(t.Context(), f.Record.Lease(), completion(key+string(q.Owner[:])))
						})
						ops.Add(1)
						if err != nil {
							wrong.Add(1)
							t.Errorf("the owner of %q cannot settle: %v", key, err)
						}
						if got := get(t, direct, key); got.State != store.Completed || got.Owner != q.Owner || string(got.Outcome.Body) != key+string(q.Owner[:]) {
							wrong.Add(1)
							t.Errorf("%q is %v with %q", key, got.State, got.Outcome.Body)
						}
					}
				})
			}
			all.Wait()
			p.often(0)
			cuts := [...]int64{p.cuts[cutRequest].Load(), p.cuts[cutAnswer].Load(), p.cuts[cutWithin].Load()}
			figure(t, "an ambiguous claim is resolved rightly when connections are cut ("+name+")", false, ops.Load(), wrong.Load(),
				fmt.Sprintf("%d requests, %d answers and %d answers within were cut; %d claims had no answer at first", cuts[0], cuts[1], cuts[2], unsure.Load()))
			for fate, n := range cuts {
				if n == 0 {
					t.Errorf("fate %d never came", fate)
				}
			}
		})
	}
}

// The scripts survive SCRIPT FLUSH, in the middle of traffic too.
func TestScripts_ScriptFlush_AreSentAgain(t *testing.T) {
	t.Parallel()
	c := clientAt(t, redistest.Start(t, redistest.Fast...).URL())
	s := openOn(t, c, nil)
	l := newLedger()
	var stop atomic.Bool
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() { l.work(t, s, itoa(g), &stop) })
	}
	for range 20 {
		l.grow(t, 20)
		if err := c.ScriptFlush(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	}
	l.grow(t, 20)
	stop.Store(true)
	all.Wait()
	if n := l.resent.Load(); n != 0 {
		t.Errorf("%d requests failed", n)
	}
	if lost := l.lost(t, s); lost != 0 {
		t.Errorf("%d of %d lost", lost, l.size())
	}
	r := claim(t, s, "k")
	for _, step := range []struct {
		what string
		fn   func() error
	}{
		{"Renew", func() error {
			errs, err := s.Renew(t.Context(), []store.Lease{r.Lease()}, time.Hour)
			return errors.Join(append(errs, err)...)
		}},
		{"Get", func() error { return second(s.Get(t.Context(), r.Key)) }},
		{"Swap", func() error {
			now := get(t, s, "k")
			if err := c.ScriptFlush(t.Context()).Err(); err != nil {
				return err
			}
			f, err := s.Swap(t.Context(), now.Seen(), proposal("k"))
			if err == nil && !f.Won {
				err = errors.New("not won")
			}
			return err
		}},
		{"Sweep", func() error { return second(s.Sweep(t.Context(), "", 10)) }},
		{"List", func() error {
			for _, err := range s.List(t.Context(), store.Filter{}) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		if err := c.ScriptFlush(t.Context()).Err(); err != nil {
			t.Error(err)
		}
		if err := step.fn(); err != nil {
			t.Errorf("%s after a flush: %v", step.what, err)
		}
	}
}
