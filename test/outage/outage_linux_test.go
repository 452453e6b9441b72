package outage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
	"github.com/semel-go/semel/test/internal/stores"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // the client reports each connection that fails
	os.Exit(stores.Main(m))
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// limits are StoreTimeout and SettleTimeout: short ones, or with SEMEL_EVIDENCE=1 the
// defaults.
func limits() (limit, settleLimit time.Duration) {
	if os.Getenv("SEMEL_EVIDENCE") == "1" {
		return 5 * time.Second, 10 * time.Second
	}
	return 600 * time.Millisecond, time.Second
}

// slack is how much longer than its limit a call may take.
const slack = time.Second

// load is calls of all kinds, and how long they took.
type load struct {
	guard *semel.Guard
	began time.Time // of the outage; zero: none yet
	down  atomic.Bool

	keys, ok, unavailable, lost atomic.Int64

	mu     sync.Mutex
	waits  []time.Duration // during the outage, of calls that had no claim
	settle []time.Duration // of calls that had one
	wrong  []error
}

// run makes one call and measures the part of its time that is in the outage. Busy:
// how long the handler works.
func (l *load) run(ctx context.Context, call semel.Call, busy time.Duration) {
	start, ran, handled := time.Now(), false, time.Duration(0)
	_, err := l.guard.Run(ctx, call, func(context.Context, *semel.Execution) (store.Outcome, error) {
		ran = true
		began := time.Now()
		<-time.After(busy)
		handled = time.Since(began)
		return store.Outcome{Body: []byte("x")}, nil
	})
	if !l.down.Load() {
		if err != nil {
			l.note(0, ran, err)
		}
		l.ok.Add(1)
		return
	}
	if start.Before(l.began) {
		start = l.began
	}
	l.note(time.Since(start)-handled-call.Wait, ran, err)
}

func (l *load) note(took time.Duration, ran bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ran {
		l.settle = append(l.settle, took)
	} else {
		l.waits = append(l.waits, took)
	}
	switch {
	case err == nil:
	case errors.Is(err, semel.ErrOutcomeNotStored):
		l.lost.Add(1)
	case errors.Is(err, semel.ErrUnavailable), errors.Is(err, semel.ErrInProgress):
		l.unavailable.Add(1)
	default:
		l.wrong = append(l.wrong, err)
	}
}

// start begins new calls, duplicates of completed calls, and duplicates that wait
// for a call in progress.
func (l *load) start(ctx context.Context, all *sync.WaitGroup) {
	newCall := func(key string, wait time.Duration) semel.Call {
		return semel.Call{Operation: "op", Tenant: "t", Key: key, Payload: semel.NoPayload(), Wait: wait}
	}
	for range 6 {
		all.Go(func() {
			for ctx.Err() == nil {
				key := fmt.Sprint(l.keys.Add(1))
				l.run(context.WithoutCancel(ctx), newCall(key, 0), 20*time.Millisecond)
				l.run(context.WithoutCancel(ctx), newCall(key, 0), 0)
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				key := fmt.Sprint(l.keys.Add(1))
				var pair sync.WaitGroup
				for range 3 {
					pair.Go(func() {
						l.run(context.WithoutCancel(ctx), newCall(key, 300*time.Millisecond), 100*time.Millisecond)
					})
				}
				pair.Wait()
			}
		})
	}
}

// measureDelays measures how late timers are on a busy machine, until stop is called, which
// returns the longest delay. Stop it after the last call that is measured has ended.
func measureDelays() (stop func() time.Duration) {
	ended, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		most := time.Duration(0)
		for {
			start := time.Now()
			<-time.After(10 * time.Millisecond)
			most = max(most, time.Since(start)-10*time.Millisecond)
			select {
			case <-ended:
				longest <- most
				return
			default:
			}
		}
	}()
	return func() time.Duration { close(ended); return <-longest }
}

// waitForCalls waits until n calls have ended well. It fails the test after two minutes.
func waitForCalls(t *testing.T, ok *atomic.Int64, n int64) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ok.Load() < n && !t.Failed(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d calls succeeded within 2 minutes before the outage, want %d", ok.Load(), n)
		}
	}
}

// tookTooLong reports whether a call failed because the server took longer than a limit, as
// it may on a busy machine before an outage.
func tookTooLong(err error) bool {
	for _, limit := range []error{semel.ErrUnavailable, semel.ErrInDoubt, pgstore.ErrBusy, context.DeadlineExceeded} {
		if errors.Is(err, limit) {
			return true
		}
	}
	return false
}

// A server freezes, is cut off or dies while calls are in flight: each call returns
// within its limit and a second, and says that the store gave no answer. When the
// server is back, the same Guard goes on.
func TestServerGivesNoAnswer_EachCallReturnsWithinItsLimit(t *testing.T) {
	limit, settleLimit := limits()
	for name, start := range servers {
		for harm, act := range map[string]func(s server, r *relay, on bool) error{
			"frozen": func(s server, _ *relay, on bool) error { s.freeze(on); return nil },
			"cut off": func(_ server, r *relay, on bool) error {
				r.cut.Store(on)
				return nil
			},
			"killed": func(s server, _ *relay, on bool) error {
				if on {
					s.kill()
					return nil
				}
				return s.start()
			},
		} {
			t.Run(name+" "+harm, func(t *testing.T) {
				s := start(t)
				r := newRelay(t, s.addr)
				addr := s.addr
				if harm == "cut off" {
					addr = r.addr()
				}
				st, end, err := s.open(t.Context(), addr)
				if err != nil {
					t.Fatal(err)
				}
				g, err := semel.New(st, &semel.Options{StoreTimeout: limit, SettleTimeout: settleLimit, Lease: 30 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				l := &load{guard: g}
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				l.start(ctx, &all)
				stopDelays := measureDelays()
				for l.ok.Load() < 50 {
					<-time.After(10 * time.Millisecond)
				}
				l.began = time.Now()
				l.down.Store(true)
				if err := act(s, r, true); err != nil {
					t.Fatal(err)
				}
				<-time.After(limit + settleLimit)
				asked := time.Now()
				pingErr := g.Ping(t.Context())
				pinged := time.Since(asked)
				cancel()
				all.Wait()
				late := stopDelays()
				longest, longestSettle := slices.Max(append(l.waits, 0)), slices.Max(append(l.settle, 0))
				if b, err := json.Marshal(map[string]any{
					"claim": "a call returns within its limit and a second when " + name + " is " + harm + " under load", "where": name,
					"trials": len(l.waits) + len(l.settle), "failures": len(l.wrong), "control": false,
					"detail": fmt.Sprintf("limit %v: the longest wait was %v, and %v with a settlement (limit %v); %d calls were refused, %d outcomes not stored",
						limit, longest.Round(time.Millisecond), longestSettle.Round(time.Millisecond), settleLimit, l.unavailable.Load(), l.lost.Load()),
				}); err == nil {
					t.Logf("evidence: %s", b)
				}
				if longest > limit+slack+late || longestSettle > settleLimit+slack+late {
					t.Errorf("a call without a claim waited %v, limit %v; one with a settlement %v, limit %v; timers were up to %v late", longest, limit, longestSettle, settleLimit, late)
				}
				if pingErr == nil || pinged > limit+slack+late {
					t.Errorf("Ping: %v after %v", pingErr, pinged)
				}
				if l.unavailable.Load() == 0 || len(l.wrong) > 0 {
					t.Errorf("%d calls were refused; wrong errors: %v", l.unavailable.Load(), l.wrong)
				}
				if err := act(s, r, false); err != nil {
					t.Fatal(err)
				}
				back := time.Now()
				for i := 0; ; i++ {
					if _, err = g.Run(t.Context(), semel.Call{Operation: "op", Tenant: "t", Key: fmt.Sprint("after ", i), Payload: semel.NoPayload()},
						func(context.Context, *semel.Execution) (store.Outcome, error) { return store.Outcome{}, nil }); err == nil {
						break
					}
					if time.Since(back) > time.Minute {
						t.Fatalf("a minute after the server is back: %v", err)
					}
				}
				if err := end(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
