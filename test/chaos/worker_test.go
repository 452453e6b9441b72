//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
	"github.com/semel-go/semel/test/internal/stores"
)

const op string = "chaos"

// spec is what a worker is told.
type spec struct {
	ID           int // never used again, unlike a process id
	Backend, URL string
	Desk         string // where the test listens
	Lanes        int    // calls at a time
	Policy       semel.Policy
	Lease        time.Duration
	Settle       time.Duration // how long a settlement is tried; 0: the default
	Patience     time.Duration // how long a caller stays; 0: to the end
	Wrap         string        // a fault of the store's that a control needs
	Faults       float64       // the chance of a store's call to fail
	Seed         uint64
}

// errGone ends a worker whose test is no more there.
var errGone = errors.New("the test does not answer")

func TestMain(m *testing.M) {
	text := os.Getenv(workerEnv)
	if text == "" {
		code := m.Run()
		removeBinary()
		os.Exit(code)
	}
	signal.Ignore(syscall.SIGXFSZ) // so that a write above the limit fails with an error
	var s spec
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = work(context.Background(), s)
	}
	if err != nil && !errors.Is(err, errGone) {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// work runs deliveries until the test has no more.
func work(ctx context.Context, s spec) error {
	b, ok := stores.BackendNamed(s.Backend)
	if !ok {
		return fmt.Errorf("no backend %q", s.Backend)
	}
	st, end, err := b.Open(ctx, s.URL)
	for began := time.Now(); err != nil && b.HasServer && time.Since(began) < 5*time.Minute; { // it may just have been killed, or the network is bad
		<-time.After(50 * time.Millisecond)
		st, end, err = b.Open(ctx, s.URL)
	}
	if err != nil {
		return err
	}
	fault := storetest.NewFault(wrap(s.Wrap, st), storetest.Chance(s.Seed, s.Faults, lossy...))
	errs := make([]error, s.Lanes)
	var wg sync.WaitGroup
	for i := range s.Lanes {
		wg.Go(func() { errs[i] = runLane(ctx, s, fault) })
	}
	wg.Wait()
	if s.Faults > 0 {
		errs = append(errs, tellFaults(ctx, s, fault))
	}
	return errors.Join(append(errs, end())...)
}

// tellFaults says how often each fault was met.
func tellFaults(ctx context.Context, s spec, fault *storetest.Fault) error {
	met := map[string]int{}
	for o := storetest.OpClaim; o <= storetest.OpGet; o++ {
		for _, m := range lossy {
			met[m.String()] += fault.Count(o, m)
		}
		met["calls"] += fault.Calls(o)
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", s.Desk)
	if err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	defer c.Close()
	_, err = newLine(c).put(question{Do: tell, Faults: met})
	return err
}

// lossy is what can become of a store's call when faults are wanted.
var lossy = []storetest.Mode{storetest.Before, storetest.LostReply, storetest.Twice, storetest.Late}

// lane runs one call at a time, on a Guard of its own, so that the store knows
// whose call it serves.
type lane struct {
	spec spec
	line *line
	g    *semel.Guard
}

func runLane(ctx context.Context, s spec, fault *storetest.Fault) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", s.Desk)
	if err != nil {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	defer c.Close()
	n := &lane{spec: s, line: newLine(c)}
	if n.g, err = guard(points{fault, n.reach}, s, func(key string, fence uint64) (string, bool) {
		r := n.put(question{Do: ask, Key: key, Fence: fence})
		return r.Body, r.OK
	}); err != nil {
		return err
	}
	n.put(question{Do: hello, Worker: s.ID})
	for {
		r := n.put(question{Do: next})
		if r.Key == "" {
			return nil
		}
		if s.Faults > 0 {
			fault.Deliver(ctx)
		}
		n.put(n.deliver(ctx, r.Key))
	}
}

// guard is the Guard of a worker, or of the test. A reconciler calls asked.
func guard(st store.Store, s spec, asked func(key string, fence uint64) (receipt string, happened bool)) (*semel.Guard, error) {
	o := &semel.Options{OnDoubt: s.Policy, Lease: s.Lease, SettleTimeout: s.Settle}
	if s.Policy == semel.Park {
		o.Reconcile = func(_ context.Context, x *semel.Execution) (semel.Verdict, error) {
			if receipt, happened := asked(x.Key(), x.Fence()); happened {
				return semel.Happened(store.Outcome{Body: []byte(receipt)}), nil
			}
			return semel.DidNotHappen(), nil
		}
	}
	return semel.New(st, o)
}

// put ends the process when the test is gone: there is nobody left to tell.
func (n *lane) put(q question) reply {
	r, err := n.line.put(q)
	if err != nil {
		os.Exit(0)
	}
	return r
}

func (n *lane) reach(p point, key string, fence uint64) {
	n.put(question{Do: reach, Point: p, Key: key, Fence: fence})
}

func call(key string, wait time.Duration) semel.Call {
	c := semel.Call{Operation: op, Tenant: semel.Shared, Key: key, Payload: semel.NoPayload()}
	c.Wait = wait
	return c
}

var errRefused = semel.NoEffect(errors.New("the ledger has said that this would not happen"))

// deliver runs a key once, and says what came of it.
func (n *lane) deliver(ctx context.Context, key string) question {
	if n.spec.Wrap == withoutSemel {
		r := n.put(question{Do: pay, Key: key, Attempt: 1})
		return question{Do: answer, Key: key, Class: done, Body: r.Body}
	}
	if n.spec.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, n.spec.Patience)
		defer cancel()
	}
	a := question{Do: answer, Key: key}
	stop := func(ctx context.Context, p point) {
		if !n.put(question{Do: reach, Point: p, Key: key, Fence: a.Fence}).Held {
			return
		}
		select { // its clock has already told, or tells as soon as the runtime's timers are looked at
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
		a.Cancelled = errors.Is(context.Cause(ctx), semel.ErrLeaseLost)
	}
	res, err := n.g.Run(ctx, call(key, n.spec.Lease/4), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		a.Fence, a.Attempt = x.Fence(), x.Attempt()
		stop(ctx, beforeEffect) // and goes on all the same, cancelled or not
		r := n.put(question{Do: pay, Key: key, Fence: x.Fence(), Attempt: x.Attempt()})
		if !r.OK {
			return store.Outcome{}, errRefused
		}
		stop(ctx, afterEffect)
		return store.Outcome{Body: []byte(r.Body)}, nil
	})
	a.Class, a.Body, a.Replayed = classOf(err), string(res.Body), res.Replayed
	if err != nil {
		a.Text = err.Error()
	}
	return a
}

// classes are in the order in which they are looked for: an error can have
// several reasons, and the first of these is the caller's.
var classes = []struct {
	reason error
	class  class
}{
	{semel.ErrLeaseLost, leaseLost}, {semel.ErrOutcomeNotStored, notStored}, {semel.ErrParked, parked}, {errRefused, busy},
	{semel.ErrReleased, busy}, {semel.ErrInProgress, busy}, {semel.ErrUnavailable, noStore}, {semel.ErrCanceled, noStore},
}

func classOf(err error) class {
	if err == nil {
		return done
	}
	for _, c := range classes {
		if errors.Is(err, c.reason) {
			return c.class
		}
	}
	return unexpected
}
