package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// call is one request of a caller, who makes it again a few times if it fails.
type call struct {
	w       *world
	id      int
	p       *process
	key     store.Key
	payload int
	tries   int    // left
	token   string // of a reservation
	reserve bool
	read    bool // by the Guard that reruns
	probe   bool // at the end, when all is quiet
	job     bool // no request at all

	began  int // tick
	ended  int // tick; 0: not yet, or never
	over   bool
	cancel context.CancelFunc
	seen   store.Record // the record that its last message brought
	busy   bool         // it has seen another at work
	run    *run         // that it has started
	end    ending
}

// ending is what a call came to.
type ending struct {
	res      semel.Result
	ticket   *semel.Ticket
	err      error
	panicked any
	left     bool // by panic or Goexit
}

func (w *world) number(p *process) *call {
	c := &call{w: w, id: len(w.calls) + 1, p: p}
	w.calls = append(w.calls, c)
	return c
}

// call starts a request, in any process.
func (w *world) call(like *call) {
	c := *like
	next := &c
	c.id, c.p = len(w.calls)+1, w.procs[w.rng.IntN(len(w.procs))]
	if c.probe {
		c.p = w.procs[0]
	}
	c.began = w.tick
	w.calls = append(w.calls, next)
	w.open++
	w.tally.ops++
	w.tally.calls++
	ctx, cancel := context.WithCancel(context.WithValue(c.p.ctx, callKey{}, next))
	next.cancel = cancel
	var wait time.Duration
	if w.odds(w.plan.wait) || c.probe {
		wait = time.Duration(1+w.rng.IntN(25))*tick + oddWait
	}
	if w.odds(w.plan.leave) {
		w.push(&event{at: w.tick + w.rng.IntN(6), proc: c.p, wakes: true, run: func() {
			if !next.over {
				w.reach(callerLeft)
				w.note("leaves", next.id, 0)
				cancel()
			}
		}})
	}
	w.push(&event{at: w.tick, proc: c.p, wakes: true, run: func() {
		w.note("calls "+c.key.Value, next.id, int64(c.p.id))
		go next.do(ctx, wait)
	}})
}

func (c *call) do(ctx context.Context, wait time.Duration) {
	c.end.left = true
	defer func() {
		c.end.panicked = recover()
		c.cancel()
		c.p.post(&item{kind: ends, c: c})
	}()
	g := c.p.guard
	if c.read && c.p.fresh != nil {
		g = c.p.fresh
	}
	sc := semel.Call{Operation: c.key.Operation, Tenant: c.key.Tenant, Key: c.key.Value, Payload: semel.Bytes([]byte{byte(c.payload)})}
	sc.Wait = wait
	switch {
	case c.reserve:
		var t semel.Ticket
		t, c.end.err = c.p.guard.Reserve(ctx, sc)
		c.end.ticket = &t
	default:
		if c.token != "" {
			sc, c.end.err = g.Redeem(c.token)
			sc.Wait = wait
		}
		switch {
		case c.end.err != nil:
		case c.w.db != nil:
			c.end.res, c.end.err = c.w.db.run(ctx, c, g, sc)
		default:
			c.end.res, c.end.err = g.Run(ctx, sc, c.handler(g, nil))
		}
	}
	c.end.left = false
}

// ended is where the scheduler takes notice of a call's end.
func (w *world) ended(c *call) {
	c.over, c.ended = true, w.tick
	w.open--
	e := &c.end
	if p := e.panicked; p != nil && p != thrown {
		w.fail("call %d panicked: %v", c.id, p)
	}
	w.note("ends: "+c.answer(), c.id, 0)
	w.answered(c)
	if c.reserve && e.err == nil && e.ticket.Result == nil {
		w.ticket(c)
		return
	}
	w.again(c, e.err)
}

// ticket is for the worker that the token is handed to: sometimes twice.
func (w *world) ticket(c *call) {
	n := 1
	if w.odds(w.plan.redeemTwice) {
		w.reach(tokenTwice)
		n = 2
	}
	for range n {
		next := &call{w: w, key: c.key, payload: c.payload, tries: 3, token: c.end.ticket.Token}
		w.after(w.rng.IntN(12), func() { w.call(next) })
	}
}

// again lets the caller try once more.
func (w *world) again(c *call, err error) {
	if err == nil || c.tries == 0 || c.job || w.calm {
		return
	}
	if _, final := errors.AsType[*semel.Failure](err); final {
		return
	}
	next := &call{w: w, key: c.key, payload: c.payload, tries: c.tries - 1, token: c.token, reserve: c.reserve, read: c.read}
	w.after(1+w.rng.IntN(8), func() { w.call(next) })
}

var reasons = []error{
	semel.ErrInvalid, semel.ErrInProgress, semel.ErrReleased, semel.ErrMismatch, semel.ErrUnverifiable, semel.ErrParked, semel.ErrNotKept,
	semel.ErrExpired, semel.ErrOutcomeNotStored, semel.ErrLeaseLost, semel.ErrUnavailable, semel.ErrCanceled,
}

// answer says what a call came to, in words that are the same each time.
func (c *call) answer() string {
	e := &c.end
	f, final := errors.AsType[*semel.Failure](e.err)
	switch {
	case e.panicked != nil:
		return "panic"
	case e.left:
		return "Goexit"
	case e.err == nil && c.reserve && e.ticket.Result == nil:
		return fmt.Sprintf("ticket, fresh %v", e.ticket.Fresh)
	case e.err == nil:
		return fmt.Sprintf("%s, replayed %v", strings.TrimRight(string(e.res.Body), "."), e.res.Replayed)
	case final:
		return "failure " + f.Code
	}
	for _, r := range reasons {
		if errors.Is(e.err, r) {
			return r.Error()
		}
	}
	return "error"
}
