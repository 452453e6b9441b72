package storm

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
	"github.com/semel-go/semel/sweep"
)

// newProcess opens the store for one more process, behind bad weather.
func (s *storm) newProcess(t testing.TB, open processOpener) *process {
	p := &process{s: s}
	p.st = tap{st: open(func(st store.Store) store.Store {
		f := storetest.NewFault(tap{st: st, s: s, slow: true}, p.inject)
		p.faults = append(p.faults, f)
		return f
	}), s: s}
	guard := func(o semel.Options) *semel.Guard {
		o.Lease, o.SettleTimeout, o.MaxWaiters, o.MaxOutcome = lease, settling, 3, 256
		o.Observe = s.observe
		if o.Retention == 0 {
			o.Retention, o.Reservation = time.Hour, reservation
		}
		g, err := semel.New(p.st, &o)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	backoff := func(n int) time.Duration { return time.Duration(min(n, 5)) * time.Millisecond }
	p.retry = guard(semel.Options{Backoff: backoff})
	p.park = guard(semel.Options{OnDoubt: semel.Park, Reconcile: s.reconcile})
	p.few = guard(semel.Options{MaxAttempts: mostAttempts})
	p.fresh = guard(semel.Options{Rerun: true})
	p.brief = guard(semel.Options{Retention: brief})
	return p
}

const mostAttempts = 6

// inject is what becomes of one call of the store.
func (p *process) inject(op storetest.Op, _ int) storetest.Mode {
	now := time.Now().UnixNano()
	switch {
	case p.s.calm.Load():
		return storetest.None
	case now < p.down.Load(), op == storetest.OpRenew && now < p.stale.Load():
		return storetest.Before
	case !p.s.oneIn(10):
		return storetest.None
	}
	return []storetest.Mode{
		storetest.Before, storetest.LostReply, storetest.LostReply, storetest.Twice, storetest.Late, storetest.Stall,
	}[p.s.upTo(6)]
}

// trouble is what comes over a whole process, and requests that come late.
func (s *storm) trouble(r *rand.Rand, _ string) {
	p := s.procs[r.IntN(processes)]
	switch r.IntN(8) {
	case 0:
		p.down.Store(time.Now().Add(time.Duration(r.IntN(60)) * time.Millisecond).UnixNano())
	case 1: // as one that has died
		p.down.Store(time.Now().Add(settling + lease).UnixNano())
	case 2:
		p.stale.Store(time.Now().Add(2 * lease).UnixNano())
	default:
		for _, f := range p.faults {
			f.Deliver(context.Background())
		}
	}
}

// sweep is one pass of a sweeper.
func (s *storm) sweep(r *rand.Rand, _ string) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	stats, err := sweep.Once(ctx, s.procs[r.IntN(processes)].st, &sweep.Options{
		Batch: 1 + r.IntN(10), Rest: -1, Retention: time.Hour,
	})
	if err != nil && !errors.Is(err, semel.ErrUnavailable) {
		s.errorf("a sweep failed: %v", err)
	}
	s.amu.Lock()
	defer s.amu.Unlock()
	s.met["swept: deleted"] += stats.Deleted
	s.met["swept: released"] += stats.Released
	s.met["swept: parked"] += stats.Parked
}

// operate is an operator, or a timer, who looks after what is parked.
func (s *storm) operate(r *rand.Rand, key string) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	p := s.procs[r.IntN(processes)]
	if r.IntN(2) == 0 {
		n, err := p.park.Reconcile(ctx, operation, 3)
		if err != nil && !errors.Is(err, semel.ErrUnavailable) && !errors.Is(err, errHandler) &&
			!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) && !errors.Is(err, storetest.ErrInjected) {
			s.errorf("Reconcile: %v", err)
		}
		s.amu.Lock()
		s.met["reconciled by a timer"] += n
		s.amu.Unlock()
		return
	}
	rec, err := p.park.Get(ctx, semel.Call{Operation: operation, Tenant: "tenant", Key: key})
	if err != nil || rec.State != store.Unknown {
		return
	}
	v := s.verdict(key, rec.Fence)
	if err := p.park.Resolve(ctx, rec, v); err == nil {
		s.meets("resolved by an operator")
	} else if !errors.Is(err, store.ErrChanged) && !errors.Is(err, semel.ErrUnavailable) {
		s.errorf("Resolve: %v", err)
	}
}

// reconcile is the park Guards' reconciler.
func (s *storm) reconcile(ctx context.Context, x *semel.Execution) (semel.Verdict, error) {
	if !s.calm.Load() {
		switch s.upTo(12) {
		case 0:
			return semel.Verdict{}, nil
		case 1:
			return semel.DidNotHappen(), errHandler
		case 2:
			<-ctx.Done()
		case 3:
			<-time.After(lease * 3 / 2)
		}
	}
	return s.verdict(bankKey(x), x.Fence()), nil
}

// verdict answers for the bank. If it says that no effect happened, the bank
// refuses later effects up to the fence.
func (s *storm) verdict(key string, fence uint64) semel.Verdict {
	run, happened := s.bar(key, fence)
	switch {
	case happened:
		return semel.Happened(outcome(run))
	case s.oneIn(6) && !s.calm.Load():
		return semel.FailedForGood(&semel.Failure{Code: "declined", Message: "by the reconciler"})
	}
	return semel.DidNotHappen()
}

// eventsKey finds the count of a call's ends.
type eventsKey struct{}

type events struct{ ends []semel.Event }

func (s *storm) observe(ctx context.Context, e semel.Event) {
	s.amu.Lock()
	defer s.amu.Unlock()
	s.met[e.Kind]++
	if c, ok := ctx.Value(eventsKey{}).(*events); ok && e.EndsCall {
		c.ends = append(c.ends, e)
	}
}

func (s *storm) errorf(format string, args ...any) { s.book.errorf(format, args...) }
