package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/proc"
)

// target is a process to kill.
type target struct {
	*proc.Process
	title string // the name that people read
	// ready waits until it is at work.
	ready func(context.Context) error
	// inFlight counts what the frozen process is working on.
	inFlight func() (int, error)

	kills, lost atomic.Int64 // how often it was killed, and how many were in flight then
}

// answers makes the target ready when it answers at a URL.
func (t *target) answers(url string) *target {
	t.ready = func(ctx context.Context) error { return t.Ready(ctx, url) }
	return t
}

// settle is how long a frozen process needs until what it has sent is seen.
const settle = 2 * time.Millisecond

// kills is how often any of the targets was killed.
func kills(targets []*target) (n int) {
	for _, t := range targets {
		n += int(t.kills.Load())
	}
	return n
}

// targets adds what became of the processes.
func (f *Figures) targets(all []*target) {
	for _, t := range all {
		f.Kills += int(t.kills.Load())
		f.InFlightAtKills += int(t.lost.Load())
		f.Crashes += t.Deaths()
	}
}
