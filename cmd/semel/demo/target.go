package main

import (
	"context"
	"fmt"
	"sync"
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

// boots makes the target ready when its journal says that it has begun once more than it
// was killed.
func (t *target) boots(count func() (int, error)) {
	t.ready = func(ctx context.Context) error {
		return t.Until(ctx, func(context.Context) error {
			boots, err := count()
			if want := int(t.kills.Load()) + 1; err == nil && boots < want {
				err = fmt.Errorf("it has begun to work %d times, and not %d", boots, want)
			}
			return err
		})
	}
}

// log is the journal of a process, as far as it is written. S is its state.
type log[S any] struct {
	mu     sync.Mutex
	state  *S
	update func() error // reads what is new
}

// look shows what is there by now.
func (l *log[S]) look(f func(*S)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.update(); err != nil {
		return err
	}
	f(l.state)
	return nil
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
