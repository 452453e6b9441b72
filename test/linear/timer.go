package linear

import (
	"context"
	"time"

	"github.com/semel-go/semel/store"
)

// farTimer is a wait that is not over before the end of a history, also for a look that is
// nearTimer ahead.
const (
	farTimer  = 10 * time.Hour
	nearTimer = time.Hour
)

// moveTimer moves a client: it sets or drops a timer, or looks which are due.
func (c *client) moveTimer(ctx context.Context, t store.Timers) {
	in := &Input{Kind: SetTimer, Key: c.key()}
	c.s.mu.Lock()
	if n := len(c.s.versions); n > 0 && c.rng.IntN(3) > 0 {
		in.Version = c.s.versions[max(0, n-1-c.rng.IntN(3))]
	}
	c.s.mu.Unlock()
	switch n := c.rng.IntN(10); {
	case n < 5:
		for i := range in.Next {
			in.Next[i] = byte(c.rng.Uint32())
		}
		in.For = []time.Duration{0, 300 * time.Microsecond, farTimer}[c.rng.IntN(3)]
		c.call(in, func(a *Answer) error {
			return c.sent(func() (err error) { a.Set, err = t.SetTimer(ctx, in.Key, in.Version, in.Next, in.For); return err })
		})
		c.s.mu.Lock()
		c.s.versions = append(c.s.versions, in.Next)
		c.s.mu.Unlock()
	case n < 7:
		in.Kind = DropTimer
		c.call(in, func(*Answer) error {
			return c.sent(func() error { return t.DropTimer(ctx, in.Key, in.Version) })
		})
	default:
		c.dueTimers(ctx, t)
	}
}

// dueTimers is an operation on each key.
func (c *client) dueTimers(ctx context.Context, t store.Timers) {
	s := c.s
	s.mu.Lock()
	at := s.h.Tick()
	s.mu.Unlock()
	within := []time.Duration{0, nearTimer}[c.rng.IntN(2)]
	var due []store.Timer
	var now time.Time
	err := c.sent(func() (err error) { due, now, err = t.DueTimers(ctx, s.key(0).Operation, within, 1000); return err })
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	back := s.h.Tick()
	for i := range s.o.Keys {
		a := &Answer{Now: now}
		for _, found := range due {
			if found.Key == s.key(i) {
				a.Timer = found
			}
		}
		s.h.Return(s.h.Call(c.id, at, &Input{Kind: DueTimers, Key: s.key(i), For: within, Sharded: s.o.Sharded}), back, a)
	}
}

// timer is the model of a timer, beside a row that has nothing else.
type timer struct {
	version store.Owner // zero: there is none
	wait    int64       // microseconds from the change to the time at which it is due
	due     int64       // 0: not known
}

// with is t after a change by SetTimer or DropTimer, and whether it changes t.
func (t timer) with(in *Input) (timer, bool) {
	there := t != timer{}
	switch {
	case in.Kind == DropTimer && there && t.version == in.Version:
		return timer{}, true
	case in.Kind == SetTimer && (in.Version == store.Owner{} || there && t.version == in.Version):
		return timer{version: in.Next, wait: micros(in.For)}, true
	}
	return t, false
}

func changeTimer(r row, in *Input, a *Answer, can func(row, bool)) {
	changed, ok := r.timer.with(in)
	set := ok || r.timer.version == in.Next
	r.timer = changed
	can(r, a.Err == nil && (in.Kind == DropTimer || a.Set == set))
}

// dueTimer may miss a timer that has become due during the look. A store over several
// stores asks one after the other, and the time is that of the slowest clock, so that a
// timer may be due a moment after it.
func dueTimer(r row, in *Input, a *Answer, can func(row, bool)) {
	last := store.Micros(a.Now) + micros(in.For)
	there := r.timer != timer{}
	if a.Timer.Version == (store.Owner{}) {
		far := r.timer.wait > micros(nearTimer)
		known := r.timer.due != 0 && r.timer.due > last
		can(r, !there || far || known || r.timer.due == 0 && in.For == 0)
		return
	}
	due := store.Micros(a.Timer.Due)
	ok := there && r.timer.version == a.Timer.Version && fits(&r.timer.due, due)
	can(r, ok && (due <= last || in.Sharded))
}
