package dynamostore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/store/moved"
)

// clockAhead is longer than the leases and the retention of these tests.
const clockAhead = 30 * time.Minute

// rightClock is a store on a new table whose clock is that of the server, as wrongClock shows
// the server to the others.
func rightClock(t *testing.T) *Store {
	t.Helper()
	return openNew(t, &Options{IndexShards: 2, SweepExpired: true, now: ahead(-clockAhead)})
}

// wrongClock is a store on the table of s whose process's clock is ahead of the server's by
// clockAhead. The first reply after this function shows that.
func wrongClock(t *testing.T, s *Store) *Store {
	t.Helper()
	by := new(atomic.Int64)
	wrong := openOn(t, dated(t, by), s.table, nil)
	if _, err := wrong.Get(t.Context(), testKey("absent")); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	by.Store(int64(-clockAhead))
	return wrong
}

// completeForMinute records an outcome that is kept for a minute.
func completeForMinute(t *testing.T, s *Store, key string) {
	t.Helper()
	end := completion("x")
	end.Keep = time.Minute
	r := claim(t, s, key)
	if err := s.Settle(t.Context(), r.Lease(), end); err != nil {
		t.Fatal(err)
	}
}

// A process whose clock is ahead must neither park nor fail the live call of another.
func TestGuard_ClockAhead_LeavesLiveCallOfAnotherAlone(t *testing.T) {
	t.Parallel()
	direct := rightClock(t)
	for name, c := range map[string]struct {
		opt      semel.Options
		reserved bool
	}{
		"park, reserved":         {semel.Options{OnDoubt: semel.Park}, true},
		"last attempt, reserved": {semel.Options{MaxAttempts: 1}, true},
		"park":                   {semel.Options{OnDoubt: semel.Park}, false},
		"last attempt":           {semel.Options{MaxAttempts: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			owner, rival := guardWith(t, direct, c.opt), guardWith(t, wrongClock(t, direct), c.opt)
			call := semel.Call{Operation: "op", Tenant: "t", Key: name, Payload: semel.NoPayload()}
			calls := [2]semel.Call{call, call}
			if c.reserved {
				ticket, err := owner.Reserve(t.Context(), call)
				if err != nil {
					t.Fatal(err)
				}
				for i, g := range []*semel.Guard{owner, rival} {
					if calls[i], err = g.Redeem(ticket.Token); err != nil {
						t.Fatal(err)
					}
				}
			}
			var runs atomic.Int64
			inside, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			handler := func(context.Context, *semel.Execution) (store.Outcome, error) {
				if runs.Add(1) == 1 {
					close(inside)
				}
				<-end
				return store.Outcome{Body: []byte("paid")}, nil
			}
			go func() {
				_, err := owner.Run(t.Context(), calls[0], handler)
				ended <- err
			}()
			<-inside
			if _, err := rival.Run(t.Context(), calls[1], handler); !errors.Is(err, semel.ErrInProgress) {
				t.Errorf("the rival: %v, want ErrInProgress", err)
			}
			close(end)
			if err := <-ended; err != nil {
				t.Errorf("the owner: %v", err)
			}
			if res, err := owner.Run(t.Context(), calls[0], handler); err != nil || !res.Replayed || string(res.Outcome.Body) != "paid" {
				t.Errorf("a duplicate: %+v, error %v; want the outcome of the owner", res, err)
			}
			if n := runs.Load(); n != 1 {
				t.Errorf("the handler ran %d times", n)
			}
		})
	}
}

func guardWith(t *testing.T, s *Store, o semel.Options) *semel.Guard {
	t.Helper()
	g, err := semel.New(s, &o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A clock that is ahead must not judge that an outcome has expired, or a lease lapsed.
func TestJudging_ClockAhead_IsNotAheadOfServer(t *testing.T) {
	t.Parallel()
	direct := rightClock(t)
	completeForMinute(t, direct, "done")
	claim(t, direct, "live")

	check := func(method string, f store.Found) {
		t.Helper()
		if f.Record.Expired(f.Now) || f.Record.Lapsed(f.Now) {
			t.Errorf("%s: %s has expired or lapsed at %v, in %v", method, f.Record.Key.Value, f.Now, f.Record)
		}
	}
	seen := 0
	for f, err := range wrongClock(t, direct).List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		check("List", f)
	}
	if seen != 2 {
		t.Errorf("List returned %d records of 2", seen)
	}
	for _, key := range []string{"done", "live"} {
		f, err := wrongClock(t, direct).Get(t.Context(), testKey(key))
		if err != nil {
			t.Fatal(err)
		}
		check("Get", f)
		if f, err = wrongClock(t, direct).Claim(t.Context(), proposal(key)); err != nil || f.Won {
			t.Errorf("Claim: won %v, error %v", f.Won, err)
		}
		check("Claim", f)
		p := proposal(key)
		p.State = store.Unknown
		f, err = wrongClock(t, direct).Swap(t.Context(), store.Seen{Key: testKey(key)}, p)
		if err != nil || f.Won {
			t.Errorf("Swap: won %v, error %v", f.Won, err)
		}
		check("Swap", f)
	}
}

// A transaction must not begin a call again whose outcome a wrong clock holds for expired,
// nor insert a record with the time of that clock.
func TestTx_ClockAheadShownByItsRead_Refused(t *testing.T) {
	t.Parallel()
	direct := rightClock(t)
	completeForMinute(t, direct, "done")
	for _, key := range []string{"done", "new"} {
		tx := wrongClock(t, direct).NewTx()
		if f, err := tx.Claim(t.Context(), proposal(key)); !errors.Is(err, ErrClock) || f.Won {
			t.Errorf("%s: won %v, error %v; want ErrClock", key, f.Won, err)
		}
	}
}

// Package moved must not run a call again whose outcome is in the old store.
func TestMoved_OldStoreWithClockAhead_OutcomeIsCarried(t *testing.T) {
	t.Parallel()
	direct := rightClock(t)
	completeForMinute(t, direct, "done")
	st, err := moved.New(t.Context(), memstore.New(nil), wrongClock(t, direct))
	if err != nil {
		t.Fatal(err)
	}
	f, err := st.Claim(t.Context(), proposal("done"))
	if err != nil || f.Won || f.Record.State != store.Completed {
		t.Errorf("won %v, %v, error %v; want the outcome of the old store", f.Won, f.Record.State, err)
	}
}

// The wall clock steps after the last reply, which the monotonic clock shows.
func TestTrusted_ClockSteps_IsNotAheadOfServer(t *testing.T) {
	c := &clock{skew: 2 * time.Second}
	right := time.Now()
	if got := c.trusted(right); !got.Equal(right) {
		t.Errorf("before the first reply: %v, want %v", got, right)
	}
	c.observe(right, right, right.Truncate(time.Second))
	for step, corrected := range map[time.Duration]bool{-time.Hour: false, 0: false, time.Second: false, 4 * time.Second: true, time.Hour: true} {
		now := time.Now().Add(step)
		got := c.trusted(now)
		if !corrected && !got.Equal(now) {
			t.Errorf("a step of %v: %v, want %v", step, got, now)
		}
		if corrected && (got.After(time.Now()) || time.Since(got) > 2*time.Second) {
			t.Errorf("a step of %v: %v, want the server's time, about %v", step, got, time.Now())
		}
	}
}

// A renewal by a clock that was set back would store an end in the past, and another process
// would take the call over at once. The monotonic clock shows the step before it is sent.
func TestRenew_ClockWasSet_LeaseIsNotChanged(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"back": -time.Minute, "forward": time.Minute} {
		direct := openNew(t, nil)
		var by, wall atomic.Int64
		s := openOn(t, dated(t, &by), direct.table, nil)
		s.clock.now = func() time.Time { return time.Now().Add(time.Duration(wall.Load())) }
		r := claim(t, s, "k")
		wall.Store(int64(step))
		by.Store(int64(-step)) // the server's time did not step
		if errs, err := s.Renew(t.Context(), []store.Lease{r.Lease()}, time.Hour); !errors.Is(err, ErrClock) {
			t.Errorf("%s: %v, %v; want ErrClock", name, errs, err)
		}
		if got := get(t, direct, "k"); !got.Until.Equal(r.Until) {
			t.Errorf("%s: the lease ends at %v, want %v as before", name, got.Until, r.Until)
		}
	}
}

// The clock is set while the renewal is on its way. Its reply shows that.
func TestRenew_ReplyShowsWrongClock_IsRefused(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	var by atomic.Int64
	s := openOn(t, dated(t, &by), direct.table, nil)
	r := claim(t, s, "k")
	by.Store(int64(time.Minute))
	if errs, err := s.Renew(t.Context(), []store.Lease{r.Lease()}, time.Hour); !errors.Is(err, ErrClock) {
		t.Errorf("%v, %v; want ErrClock", errs, err)
	}
}

// A machine that was suspended has a clock that differs from the last reply and the monotonic
// clock, and is right.
func TestRenew_ClockWasSetRight_IsRenewed(t *testing.T) {
	t.Parallel()
	s := openOn(t, dated(t, new(atomic.Int64)), openNew(t, nil).table, nil)
	r := claim(t, s, "k")
	last := *s.clock.last.Load()
	last.date = last.date.Add(-time.Hour)
	s.clock.last.Store(&last)
	if errs, err := s.Renew(t.Context(), []store.Lease{r.Lease()}, time.Hour); err != nil || errs[0] != nil {
		t.Errorf("%v, %v", errs, err)
	}
}
