package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
)

func TestRun_Stopped_LeavesNoRecords(t *testing.T) {
	stopped := 0
	for _, n := range []int64{1, 30, 100, 250, 500, 800, 1200} {
		bubble(t, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			why := errors.New("Ctrl-C")
			var calls atomic.Int64
			s := new(clockwork).sound()
			f := storetest.NewFault(s, func(storetest.Op, int) storetest.Mode {
				if calls.Add(1) == n {
					stop(why)
				}
				return storetest.None
			})
			r, err := Run(ctx, targetOf(f), small())
			if !errors.Is(err, why) {
				t.Fatalf("stopped at call %d of %d: error %v", n, calls.Load(), err)
			}
			if ks := left(t, s); len(ks) > 0 {
				t.Errorf("stopped at call %d it left %d records: %+v", n, len(ks), ks[0])
			}
			if c, ok := r.Result("cleanup"); !ok || c.Verdict != OK || len(r.Checks) > len(checks)+1 {
				t.Errorf("%d checks, cleanup %+v", len(r.Checks), c)
			}
			stopped++
		})
	}
	if stopped != 7 {
		t.Errorf("%d runs were stopped", stopped)
	}
}

// others fills a store with records of other programs, and returns those that must not
// change.
func others(t *testing.T, s *sick) (kept []store.Record) {
	t.Helper()
	p := newProbe(&Target{Stores: []store.Store{s}}, &Options{}, "ann")
	for i, state := range []store.State{store.Started, store.Processing, store.Released, store.Completed, store.Failed, store.Unknown} {
		for _, op := range []string{"http", "semel-verify-2", Operation} {
			c := p.proposal(store.Key{Operation: op, Tenant: "ann", Value: fmt.Sprint(i)}, store.Processing)
			if state == store.Started {
				c.State = state
			}
			f, err := s.Store.Claim(t.Context(), c)
			if err != nil || !f.Won {
				t.Fatalf("%+v, %v", f, err)
			}
			if state > store.Processing {
				if err := s.Store.Settle(t.Context(), f.Record.Lease(), p.settlement(state, 24*time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
			f, err = s.Store.Get(t.Context(), c.Key)
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, f.Record)
		}
	}
	return kept
}

func TestRun_RecordsOfOthers_NotTouched(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := new(clockwork).sound()
		kept := others(t, s)
		r, err := Run(t.Context(), targetOf(s), small())
		allWell(t, r, err)
		for i := range kept {
			f, err := s.Store.Get(t.Context(), kept[i].Key)
			if err != nil || differs(&kept[i], &f.Record) != "" {
				t.Errorf("%+v: %v, %s", kept[i].Key, err, differs(&kept[i], &f.Record))
			}
		}
	})
}

func TestRun_EarlierRunKilled_RemovesItsRecords(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := new(clockwork).sound()
		claim := func(tenant string) store.Key {
			p := newProbe(&Target{Stores: []store.Store{s}}, &Options{}, tenant)
			c := p.proposal(store.Key{Operation: Operation, Tenant: tenant, Value: "k"}, store.Unknown)
			if _, err := s.Store.Claim(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			return c.Key
		}
		dead, user := claim("run-dead"), claim("a user's")
		pause(t.Context(), abandoned+time.Second)
		alive := claim("run-alive")
		r, err := Run(t.Context(), targetOf(s), small("strangers"))
		allWell(t, r, err)
		got := left(t, s)
		if slices.Contains(got, dead) || !slices.Contains(got, alive) || !slices.Contains(got, user) || len(got) != 2 {
			t.Errorf("left are %+v", got)
		}
	})
}

func TestRun_StoreWithoutList_AskedForEachKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := new(clockwork).sound()
		blind := struct{ store.Store }{s} // and cannot be looked into
		r, err := Run(t.Context(), targetOf(blind), small())
		allWell(t, r, err)
		if c, _ := r.Result("cleanup"); !strings.Contains(strings.Join(c.Info, "; "), "cannot list its records") {
			t.Errorf("%+v", c)
		}
		if c, _ := r.Result("settings"); len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "no check of its settings") {
			t.Errorf("%+v", c)
		}
		if ks := left(t, s); len(ks) > 0 {
			t.Errorf("it left %d records: %+v", len(ks), ks[0])
		}
		sweepsNothing(s)
		r, err = Run(t.Context(), targetOf(blind), small("strangers"))
		sure(t, r, err, "cleanup")
	})
}

func TestRun_StoreFails_BreaksNoPromise(t *testing.T) {
	for _, mode := range []storetest.Mode{storetest.Before, storetest.Stall} {
		bubble(t, func(t *testing.T) {
			begun := time.Now()
			f := storetest.NewFault(new(clockwork).sound(), storetest.Chance(1, 1, mode))
			o := small("claim-race", "expiry", "guard")
			r, err := Run(t.Context(), targetOf(f), o)
			b, ok := errors.AsType[*BrokenError](err)
			if !ok || len(b.Broken) > 0 || len(b.Incomplete) != 4 {
				t.Fatalf("%v: error %v", mode, err)
			}
			for _, c := range r.Checks {
				if c.Verdict != Incomplete || len(c.Info) == 0 || c.Info[0] == "" || c.Failures > 0 {
					t.Errorf("%v: %+v", mode, c)
				}
			}
			took := time.Since(begun)
			pause(t.Context(), time.Minute) // for the background calls of Guards
			if took > o.Limit+tidy+time.Second {
				t.Errorf("%v: it took %v", mode, took)
			}
		})
	}
}

func TestRun_CorruptRecordOfOthers_RemovesItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := new(clockwork).sound()
		s.list = func(ctx context.Context, f store.Filter) iter.Seq2[store.Found, error] {
			return func(yield func(store.Found, error) bool) {
				if !yield(store.Found{}, fmt.Errorf("row 7: %w", store.ErrCorrupt)) {
					return
				}
				for fd, err := range s.Store.List(ctx, f) {
					if !yield(fd, err) {
						return
					}
				}
			}
		}
		r, err := Run(t.Context(), targetOf(s), small("strangers"))
		allWell(t, r, err)
		if ks := left(t, &sick{Store: s.Store}); len(ks) > 0 {
			t.Errorf("it left %+v", ks)
		}
	})
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }

func TestRun_WorkerDies_IsAnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		target := targetOf(new(clockwork).sound())
		target.Start = func(context.Context, string) (*Worker, error) {
			gone := strings.NewReader("{}\n") // it was ready
			return &Worker{In: discard{io.Discard}, Out: gone, Wait: func() error { return errors.New("killed") }}, nil
		}
		r, err := Run(t.Context(), target, small("process-race"))
		if c, _ := r.Result("process-race"); err == nil || c.Verdict != Incomplete || !strings.Contains(c.Info[0], "a process has ended: killed") {
			t.Errorf("error %v, %+v", err, c)
		}
		target.Start = func(context.Context, string) (*Worker, error) { return nil, errors.New("no memory") }
		r, _ = Run(t.Context(), target, small("process-race"))
		if c, _ := r.Result("process-race"); c.Verdict != Incomplete || !strings.Contains(c.Info[0], "start a process: no memory") {
			t.Errorf("%+v", c)
		}
	})
}
