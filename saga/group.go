package saga

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/semel-go/semel"
)

// Group runs steps of a saga at the same time. Use it from one goroutine.
type Group struct {
	slots   chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	errs    []error
}

// Group makes a group that runs at most limit functions at the same time.
func (r *Run) Group(limit int) *Group { return &Group{slots: make(chan struct{}, max(1, limit))} }

// Go runs fn, which makes one or more steps, when fewer than limit functions run.
func (g *Group) Go(fn func() error) {
	g.slots <- struct{}{}
	g.running.Go(func() {
		defer func() { <-g.slots }()
		err := errors.New("saga: a function of the group called runtime.Goexit")
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("saga: a function of the group panicked: %v\n%s", p, debug.Stack())
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			g.errs = append(g.errs, err)
		}()
		err = fn()
	})
}

// Wait waits for all functions. If one of them leaves open whether its step happened,
// Wait returns its error and no *semel.Failure, so that the saga goes on until each step
// of the group has a known end, and turns back only then.
func (g *Group) Wait() error {
	g.running.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	var open []error
	var failure error
	for _, err := range g.errs {
		if _, failed := errors.AsType[*semel.Failure](err); failed {
			failure = err
		} else if err != nil {
			open = append(open, err)
		}
	}
	if len(open) > 0 {
		return errors.Join(open...)
	}
	return failure
}
