package driver

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// CopyCheckEach is how long a good answer counts for CopyChecks.Check. An operator's change of
// a place of copies is noticed at the first letter after that time.
const CopyCheckEach = 5 * time.Second

// copyRefusalEach is how long a bad answer counts, so that many letters do not ask at once.
const copyRefusalEach = time.Second

// CopyChecks checks again, before a copy is sent, whether its place keeps what it
// acknowledges. A place is the topic, subject or queue of the dead letters or the quarantine.
// Info checks it at the start of Serve, but an operator can change it later, and then an
// acknowledged copy may be dropped, and its message acked. The zero value is ready for use. It
// is safe for concurrent use.
type CopyChecks struct {
	mu     sync.Mutex
	places map[string]*copyPlace
}

// copyPlace is the last answer about a place. The goroutine whose value is in turn owns the
// other fields.
type copyPlace struct {
	turn  chan struct{}
	err   error     // the answer
	until time.Time // when the answer ends
}

// Check returns nil if a place keeps its copies. If the last answer is too old, Check calls
// ask, which asks the broker what Info asks about the place. A good answer counts for
// CopyCheckEach, and a bad one for a second. Concurrent calls for one place ask once.
//
// Forward calls Check before it sends the copy, and returns the error, which names the place,
// the setting and the next step. The message is then not acked.
func (c *CopyChecks) Check(ctx context.Context, place string, ask func(ctx context.Context) error) error {
	p := c.place(place)
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return fmt.Errorf("another copy asks the broker whether %q keeps copies, and has no answer: %w", place, ctx.Err())
	}
	if time.Now().Before(p.until) {
		return p.err
	}
	began := time.Now()
	err := ask(ctx)
	switch {
	case err == nil:
		p.err, p.until = nil, began.Add(CopyCheckEach)
	case ctx.Err() == nil: // otherwise the caller's time is over, which is no answer
		p.err, p.until = err, time.Now().Add(copyRefusalEach)
	}
	return err
}

func (c *CopyChecks) place(name string) *copyPlace {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.places[name]
	if p == nil {
		p = &copyPlace{turn: make(chan struct{}, 1)}
		if c.places == nil {
			c.places = map[string]*copyPlace{}
		}
		c.places[name] = p
	}
	return p
}
