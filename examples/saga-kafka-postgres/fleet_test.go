//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// fleet keeps processes running: after the end of one it starts the next.
type fleet struct {
	stop context.CancelFunc
	all  sync.WaitGroup

	mu    sync.Mutex
	slots map[string]*proctest.Process
	quiet bool // new processes do not die at named points

	kills, freezes, deaths, failures atomic.Int64 // by the test, by the test, at named points, with an error
}

// startFleet starts members processes of each service and of each publisher.
func startFleet(t *testing.T, k task, members int) *fleet {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fleet{stop: cancel, slots: map[string]*proctest.Process{}}
	t.Cleanup(f.end)
	for name := range services {
		for _, command := range []string{"serve " + name, "publish " + name} {
			of := k
			of.Command = command
			for i := range members {
				f.all.Go(func() { f.keep(ctx, t, fmt.Sprint(command, i), &of) })
			}
		}
	}
	return f
}

// end ends all processes.
func (f *fleet) end() {
	f.stop()
	f.all.Wait()
}

func (f *fleet) keep(ctx context.Context, t *testing.T, slot string, k *task) {
	for ctx.Err() == nil {
		p, err := f.start(t, slot, *k)
		if err != nil {
			t.Error(err)
			return
		}
		select {
		case <-p.Ended():
		case <-ctx.Done():
			p.Kill()
			return
		}
		f.mu.Lock()
		byTest := f.slots[slot] != p // kill or calm has taken it out
		f.mu.Unlock()
		switch err := p.Wait(); {
		case byTest:
			f.kills.Add(1)
		case err != nil && err.Error() == "signal: killed":
			f.deaths.Add(1)
		default: // such as: the broker does not run
			f.failures.Add(1)
			<-time.After(200 * time.Millisecond)
		}
	}
}

// start starts the next process of a slot.
func (f *fleet) start(t *testing.T, slot string, k task) (*proctest.Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.quiet {
		k.Deadly = 0
	}
	p, err := k.spawn(t)
	if err == nil {
		f.slots[slot] = p
	}
	return p, err
}

// calm kills all processes once more. Their successors do not die at named points, so that
// also services without deduplication come to an end of their repeats.
func (f *fleet) calm() {
	f.mu.Lock()
	f.quiet = true
	all := slices.Collect(maps.Values(f.slots))
	clear(f.slots)
	f.mu.Unlock()
	for _, p := range all {
		p.Kill()
	}
}

// pick returns a random process, and takes it out of its slot if the test kills it.
func (f *fleet) pick(take bool) *proctest.Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := slices.Sorted(maps.Keys(f.slots))
	if len(names) == 0 {
		return nil
	}
	name := names[rand.IntN(len(names))]
	p := f.slots[name]
	if take {
		delete(f.slots, name)
	}
	return p
}

// kill kills a random process.
func (f *fleet) kill() {
	if p := f.pick(true); p != nil {
		p.Kill()
	}
}

// freeze stops a random process for longer than its leases, and wakes it.
func (f *fleet) freeze() {
	p := f.pick(false)
	if p == nil || p.Signal(syscall.SIGSTOP) != nil {
		return // it has just ended
	}
	f.freezes.Add(1)
	f.all.Go(func() {
		<-time.After(testSession + time.Second)
		_ = p.Signal(syscall.SIGCONT) // fails if it was killed meanwhile
	})
}
