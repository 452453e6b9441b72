//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/test/internal/figure"
	"github.com/semel-go/semel/test/internal/stores"
)

// freezes are where owners are frozen, in turn.
var freezes = []point{beforeEffect, afterEffect, beforeSettle, afterClaim}

// A process that is frozen past its lease, and wakes up after another has
// taken over, changes nothing: not the record, and not what anybody is told.
// Its handler's context was cancelled by its own clock.
func TestFrozenOwner_Wakes_SettlementRefused(t *testing.T) {
	onEach(t, func(t *testing.T, b stores.Backend, in stores.Instance) {
		const workers = 6
		rounds := 4 // of each worker: 24 in all
		if figure.Long() {
			rounds = 60
		}
		f := newFreezer(t, b, in)
		var wg sync.WaitGroup
		for i := range workers {
			w := f.worker(semel.Policy(i%2), "")
			wg.Go(func() {
				// A round in which the frozen process holds the store does not count. On a busy
				// machine there are many.
				for n, judged := 0, 0; judged < rounds && n < 10*rounds && t.Context().Err() == nil; n++ {
					if f.round(w, fmt.Sprintf("%d/%d", i, n), freezes[(i+judged)%len(freezes)]) {
						judged++
					}
				}
			})
		}
		wg.Wait()
		report(t, f.wrong)
		if n, all := f.refused.Load(), int64(workers*rounds); n != all {
			t.Errorf("%d of %d zombies were refused, in %d rounds the store was held by another", n, all, f.waited.Load())
		}
		f.report("a frozen owner whose lease was taken changes no record and no answer, and its handler's context was cancelled by its own clock")
	})
}

// The same at any moment, also in the middle of a transaction: with SQLite all
// others then wait for the file, and are told so, until it wakes up.
func TestFrozenAnywhere_Wakes_OneOutcome(t *testing.T) {
	onEach(t, func(t *testing.T, b stores.Backend, in stores.Instance) {
		rounds := 4
		if figure.Long() {
			rounds = 60
		}
		f := newFreezer(t, b, in)
		for i := range 2 {
			w := f.worker(semel.Policy(i), "")
			for n := range rounds / 2 {
				f.round(w, fmt.Sprintf("%d/%d", i, n), anywhere)
			}
		}
		report(t, f.wrong)
		if n := f.refused.Load() + f.early.Load() + f.waited.Load(); n != int64(rounds) && len(f.wrong) == 0 {
			t.Errorf("%d of %d rounds are accounted for", n, rounds)
		}
		f.report("a process that is frozen at any moment changes no record that was taken over, and no answer")
	})
}

// freezer freezes workers, and takes over from them.
type freezer struct {
	t      *testing.T
	b      stores.Backend
	in     stores.Instance
	st     store.Store
	guards map[semel.Policy]*semel.Guard
	ledger map[semel.Policy]*ledger

	refused, early, cancelled, waited atomic.Int64
	mu                                sync.Mutex
	at                                map[point]int
	wrong                             []string
}

const sleepLease = 500 * time.Millisecond

func newFreezer(t *testing.T, b stores.Backend, in stores.Instance) *freezer {
	f := &freezer{
		t: t, b: b, in: in, st: opened(t, b, in), guards: map[semel.Policy]*semel.Guard{}, at: map[point]int{},
		ledger: map[semel.Policy]*ledger{semel.Retry: newLedger(), semel.Park: newLedger()},
	}
	for policy, l := range f.ledger {
		g, err := guard(f.st, spec{Policy: policy, Lease: sleepLease}, l.ask)
		if err != nil {
			t.Fatal(err)
		}
		f.guards[policy] = g
	}
	return f
}

func (f *freezer) bad(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

// round freezes a worker at a point, takes its key over, and wakes it. It returns false
// if nobody could take over, because the worker froze while it held the store.
func (f *freezer) round(s *sleeper, key string, p point) (judged bool) {
	at := p
	if at == anywhere { // released at once, and frozen wherever it gets to
		at = beforeEffect
	}
	key, fence, ok := s.begin(key, at)
	if !ok {
		return false
	}
	if p == anywhere {
		s.goOn <- false
		<-time.After(rand.N(1 + rand.N(time.Millisecond)))
	}
	if err := s.p.Signal(syscall.SIGSTOP); err != nil {
		f.bad("%s: %v", key, err)
	}
	receipt, err := f.succeed(s.policy, key, fence)
	kept, gerr := f.st.Get(context.Background(), record(key))
	if serr := s.p.Signal(syscall.SIGCONT); serr != nil {
		f.bad("%s: %v", key, serr)
	}
	if p != anywhere {
		s.goOn <- true
	}
	var q question
	select {
	case q = <-s.ended:
	case <-s.gone:
		return false
	}
	switch {
	case errors.Is(err, semel.ErrUnavailable) || errors.Is(err, semel.ErrCanceled) || errors.Is(err, semel.ErrInProgress):
		f.waited.Add(1) // frozen in the middle of a change, which holds SQLite's only lock
		f.settle(s.policy, key)
		return false
	case err != nil || gerr != nil:
		f.bad("%s: the successor of one frozen %s got %v, and then %v", key, p, err, gerr)
	case p == anywhere && q.Class == done:
		f.early.Add(1) // its settlement was through before it froze
		f.same(s.policy, key, receipt, kept.Record)
	default:
		f.zombie(s.policy, key, p, q, receipt, kept.Record)
	}
	return true
}

func record(key string) store.Key { return store.Key{Operation: op, Value: key} }

// succeed runs a key in the test itself until it has an outcome. Fence is that
// of the frozen owner; 0: nobody is frozen.
func (f *freezer) succeed(policy semel.Policy, key string, fence uint64) (receipt string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*sleepLease)
	defer cancel()
	for range 3 { // a reconciler's "no" sets the key free for the next call
		var res semel.Result
		res, err = f.guards[policy].Run(ctx, call(key, 4*sleepLease), func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
			if fence != 0 && (x.Fence() <= fence || x.Attempt() != 2) {
				f.bad("%s: fence %d after %d, attempt %d", key, x.Fence(), fence, x.Attempt())
			}
			receipt, ok := f.ledger[policy].pay(0, key, x.Attempt(), x.Fence())
			if !ok {
				return store.Outcome{}, errRefused
			}
			return store.Outcome{Body: []byte(receipt)}, nil
		})
		receipt = string(res.Body)
		if err == nil || errors.Is(err, semel.ErrUnavailable) || errors.Is(err, semel.ErrCanceled) {
			break
		}
	}
	return receipt, err
}

// zombie judges what a worker came to that has been taken over from.
func (f *freezer) zombie(policy semel.Policy, key string, p point, q question, receipt string, kept store.Record) {
	refused := q.Class == leaseLost
	if p == afterClaim {
		refused = q.Class == noStore && q.Fence == 0 // its handler has not even started
	}
	inHandler := p == beforeEffect || p == afterEffect
	switch {
	case !refused:
		f.bad("%s: the zombie frozen %s got %s (%q, %s)", key, p, q.Class, q.Body, q.Text)
	case inHandler && !q.Cancelled:
		f.bad("%s: the handler frozen %s was not cancelled by its own clock", key, p)
	default:
		f.refused.Add(1)
	}
	if inHandler {
		f.cancelled.Add(1)
	}
	f.mu.Lock()
	f.at[p]++
	f.mu.Unlock()
	f.same(policy, key, receipt, kept)
}

// settle has a key answered whose owner nobody could replace, and checks that
// there is one answer.
func (f *freezer) settle(policy semel.Policy, key string) {
	receipt, err := f.succeed(policy, key, 0)
	if err != nil {
		f.bad("%s: after its owner woke up: %v", key, err)
		return
	}
	now, err := f.st.Get(context.Background(), record(key))
	if err != nil {
		f.bad("%s: %v", key, err)
	}
	f.same(policy, key, receipt, now.Record)
}

// same checks that the record is as the successor left it, and that each
// duplicate gets the successor's answer.
func (f *freezer) same(policy semel.Policy, key, receipt string, kept store.Record) {
	now, err := f.st.Get(context.Background(), record(key))
	if err != nil || !reflect.DeepEqual(now.Record, kept) {
		f.bad("%s: the zombie has changed the record (error %v):\n%+v\n%+v", key, err, kept, now.Record)
	}
	res, err := f.guards[policy].Run(context.Background(), call(key, 0), func(context.Context, *semel.Execution) (store.Outcome, error) {
		return store.Outcome{}, errors.New("the duplicate ran")
	})
	if err != nil || string(res.Body) != receipt || !res.Replayed {
		f.bad("%s: the successor answered %q, a duplicate got %q, %v", key, receipt, res.Body, err)
	}
	f.ledger[policy].answered(key, receipt)
}

// report adds what park has to keep, too.
func (f *freezer) report(claim string) {
	f.t.Helper()
	if park := f.ledger[semel.Park].audit(semel.Park); park.repeated > 0 || park.zombies > 0 {
		f.t.Errorf("under park %d keys took effect twice, %d by a zombie", park.repeated, park.zombies)
	}
	retry := f.ledger[semel.Retry].audit(semel.Retry)
	figure.Report(f.t, figure.Figure{
		Claim: claim, Where: f.b.Name, Trials: f.refused.Load() + f.early.Load(), Failures: int64(len(f.wrong)),
		Detail: fmt.Sprintf("refused: %d (%s); %d handlers' contexts cancelled; %d had settled before they froze; in %d rounds the store was held by a frozen process, and others waited; %d effects by zombies under retry, which no store can hold back; under park 0, for the ledger refused %d",
			f.refused.Load(), counts(f.at), f.cancelled.Load(), f.early.Load(), f.waited.Load(), retry.zombies, f.ledger[semel.Park].refused),
	})
}
