package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
	"github.com/semel-go/semel/store/storetest"
)

const (
	testSkew = 200 * time.Millisecond
	// leaseSkew is so large a part of testLease that a handler still runs when the
	// clock that is ahead by it has reached the end of the lease.
	leaseSkew = 600 * time.Millisecond
	testLease = 1200 * time.Millisecond
)

// ahead is a clock that is ahead by d.
func ahead(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}

// The suite with two processes whose clocks differ by the allowed skew.
func TestCampaign_ClocksDifferByMaxSkew_Conforms(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite runs with one clock in the short form")
	}
	n := 4
	if long() {
		n = 200
	}
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) store.Store {
			return openNew(t, &Options{IndexShards: 2, SweepExpired: true, MaxSkew: testSkew, now: time.Now})
		},
		Reopen: func(t testing.TB, st store.Store) store.Store {
			s := st.(*Store)
			o := s.opt
			o.now = ahead(-testSkew)
			return openAgain(t, s, &o)
		},
		Skew:      2 * testSkew, // records of others are judged MaxSkew late, and deleted twice as late
		Histories: n,
	})
}

// beside runs a handler that holds its key to the end of its lease again and again,
// in two processes whose clocks differ, and counts handlers that run beside another.
func beside(t *testing.T, difference time.Duration) (runs, overlaps int64) {
	base := openNew(t, &Options{IndexShards: 2, MaxSkew: leaseSkew, now: time.Now})
	fast := base.opt
	fast.now = ahead(difference)
	slowGuard, fastGuard := guardOf(t, base), guardOf(t, openAgain(t, base, &fast))
	var running, ran, beside atomic.Int64
	var all sync.WaitGroup
	for round := range 5 {
		call := semel.Call{Operation: "op", Tenant: "t", Key: strconv.Itoa(round), Payload: semel.NoPayload()}
		owned := make(chan struct{})
		all.Go(func() {
			_, _ = slowGuard.Run(t.Context(), call, func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
				close(owned)
				running.Add(1)
				defer running.Add(-1)
				ran.Add(1)
				<-ctx.Done() // the Guard ends it before its lease is over
				return store.Outcome{}, ctx.Err()
			})
		})
		<-owned
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		for ctx.Err() == nil {
			_, err := fastGuard.Run(ctx, call, func(context.Context, *semel.Execution) (store.Outcome, error) {
				if running.Load() > 0 {
					beside.Add(1)
				}
				ran.Add(1)
				return store.Outcome{}, nil
			})
			if err == nil {
				break
			}
		}
		cancel()
		all.Wait()
	}
	return ran.Load(), beside.Load()
}

// guardOf is a Guard whose renewals fail, so that its handlers end with their lease.
func guardOf(t *testing.T, s *Store) *semel.Guard {
	g, err := semel.New(noRenewals{s}, &semel.Options{Lease: testLease, StoreTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

type noRenewals struct{ store.Store }

func (noRenewals) Renew(context.Context, []store.Lease, time.Duration) ([]error, error) {
	return nil, errNetwork
}

// At the bound no two handlers of a key run side by side. Beyond it they do: the
// test can see it.
func TestLease_ClocksDiffer_BoundIsMaxSkew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		difference time.Duration
		control    bool
	}{"at the bound": {leaseSkew, false}, "far beyond it": {leaseSkew + testLease, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runs, overlaps := beside(t, c.difference)
			figure(t, "clocks that differ "+name+" let no two handlers of a key run side by side", c.control, runs, overlaps, "")
			if !c.control && overlaps > 0 {
				t.Errorf("%d of %d handlers ran beside another", overlaps, runs)
			}
			if c.control && overlaps == 0 {
				t.Error("no handlers ran side by side: the test is blind")
			}
		})
	}
}

// dated is a client of the shared server that changes the Date of each reply.
func dated(t testing.TB, by *atomic.Int64) *dynamodb.Client {
	return dynamotest.Client(dynamotest.URL(t), func(o *dynamodb.Options) {
		o.HTTPClient = doFunc(func(req *http.Request) (*http.Response, error) {
			reply, err := http.DefaultClient.Do(req)
			if err == nil {
				reply.Header.Set("Date", time.Now().Add(time.Duration(by.Load())).UTC().Format(http.TimeFormat))
			}
			return reply, err
		})
	})
}

// A process whose clock is beyond half of MaxSkew from the server's grants nothing,
// settles all the same, and works again when its clock is right.
func TestClaim_ClockWrong_RefusedUntilItIsRight(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	for name, wrong := range map[string]time.Duration{"behind": time.Minute, "ahead": -time.Minute} {
		var by atomic.Int64
		s := openOn(t, dated(t, &by), direct.table, nil)
		r := claim(t, s, name+" before")
		by.Store(int64(wrong))
		for i := range 2 { // the first sees the wrong clock in its own reply
			f, err := s.Claim(t.Context(), proposal(fmt.Sprint(name, i)))
			if !errors.Is(err, ErrClock) || f.Won {
				t.Errorf("%s: claim %d: won %v, error %v; want ErrClock", name, i, f.Won, err)
			}
		}
		if f, err := s.Claim(t.Context(), proposal(r.Key.Value)); !errors.Is(err, ErrClock) || f.Won || f.Record.Owner != r.Owner {
			t.Errorf("%s: a claim of a key that has a record: won %v, %+v, %v; want ErrClock with the record", name, f.Won, f.Record, err)
		}
		if _, err := direct.Get(t.Context(), testKey(name+"1")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: a claim by a clock that is known to be wrong was sent: %v", name, err)
		}
		if _, err := s.Renew(t.Context(), []store.Lease{r.Lease()}, time.Hour); !errors.Is(err, ErrClock) {
			t.Errorf("%s: renew: %v, want ErrClock", name, err)
		}
		if err := s.Check(t.Context()); !errors.Is(err, ErrClock) {
			t.Errorf("%s: Check: %v, want ErrClock", name, err)
		}
		if _, err := s.Sweep(t.Context(), "", 10); !errors.Is(err, ErrClock) { // it would delete what is to be kept, or park a running call
			t.Errorf("%s: sweep: %v, want ErrClock", name, err)
		}
		if err := s.Settle(t.Context(), r.Lease(), completion("x")); err != nil {
			t.Errorf("%s: settle: %v", name, err)
		}
		if _, err := s.Get(t.Context(), r.Key); err != nil {
			t.Errorf("%s: get: %v", name, err)
		}
		by.Store(0)
		claim(t, s, name+" after")
	}
}

// No reply has shown a new process yet that its clock is wrong.
func TestClaim_FirstOfProcessWithWrongClock_IsNotSent(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	var by atomic.Int64
	by.Store(int64(-time.Minute))
	s := openOn(t, dated(t, &by), direct.table, nil)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			if _, err := s.Claim(t.Context(), proposal(strconv.Itoa(i))); !errors.Is(err, ErrClock) {
				t.Errorf("claim %d: %v, want ErrClock", i, err)
			}
			if _, err := direct.Get(t.Context(), testKey(strconv.Itoa(i))); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("claim %d was sent: %v", i, err)
			}
		})
	}
	all.Wait()
}

// A record must not expire early, nor a pause last long, by a clock that is known to
// be wrong.
func TestSettle_ClockWrong_IsDatedByServer(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	for name, wrong := range map[string]time.Duration{"behind": 2 * time.Hour, "ahead": -2 * time.Hour} {
		var by atomic.Int64
		s := openOn(t, dated(t, &by), direct.table, nil)
		settled, resolved, committed := claim(t, s, name+" settle"), claim(t, s, name+" swap"), claim(t, s, name+" tx")
		later := claim(t, s, name+" later")
		by.Store(int64(wrong))
		get(t, s, name+" swap") // shows the wrong clock
		end := completion("x")
		if err := s.Settle(t.Context(), settled.Lease(), end); err != nil {
			t.Errorf("%s: settle: %v", name, err)
		}
		p := proposal(name + " swap")
		p.State, p.Outcome, p.Keep = store.Completed, end.Outcome, end.Keep
		if f, err := s.Swap(t.Context(), resolved.Seen(), p); err != nil || !f.Won {
			t.Errorf("%s: swap: won %v, error %v", name, f.Won, err)
		}
		tx := s.NewTx()
		if err := errors.Join(tx.Settle(t.Context(), committed.Lease(), end), tx.Commit(t.Context())); err != nil {
			t.Errorf("%s: settle in a transaction: %v", name, err)
		}
		for _, method := range []string{" settle", " swap", " tx"} {
			want := time.Now().Add(wrong + end.Keep)
			if got := get(t, direct, name+method).Expires; got.Sub(want).Abs() > time.Minute {
				t.Errorf("%s,%s: it expires %v, want about %v by the server's clock", name, method, got, want)
			}
		}
		by.Store(0) // set right after the last reply
		if err := s.Settle(t.Context(), later.Lease(), end); err != nil {
			t.Errorf("%s: settle: %v", name, err)
		}
		if got, want := get(t, direct, name+" later").Expires, time.Now().Add(end.Keep); got.Sub(want).Abs() > time.Minute {
			t.Errorf("%s, and right again: it expires %v, want about %v", name, got, want)
		}
	}
}

// Another process may have a clock that is faster or slower.
func TestClocks_OtherProcesses_DifferByMaxSkew(t *testing.T) {
	c := newStandingClock()
	s := openOn(t, dynamotest.Client("http://127.0.0.1:1"), "unused", &Options{MaxSkew: time.Second, now: c.read})
	slowest, fastest, err := s.Clocks(t.Context())
	if now := c.read(); err != nil || !slowest.Equal(now.Add(-time.Second)) || !fastest.Equal(now.Add(time.Second)) {
		t.Errorf("%v and %v, error %v; want a second before and after %v", slowest, fastest, err, now)
	}
}
