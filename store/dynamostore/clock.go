package dynamostore

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/semel-go/semel/store"
)

// clock is this process's wall clock. DynamoDB has none that a condition can use,
// but each reply has the server's time in seconds, which shows a clock that is
// wrong.
type clock struct {
	now  func() time.Time
	skew time.Duration
	// checksServer is true if the clock is compared with the server's.
	checksServer bool
	// hasReply is true after the first reply.
	hasReply atomic.Bool
	// wrong is by how much the clock was surely ahead of the server's when the last
	// reply arrived. It is negative if the clock was late.
	wrong atomic.Int64
	last  atomic.Pointer[reading]
}

// reading is the server's time in a reply, and this process's times, with the monotonic
// clock, before the request and after the reply.
type reading struct{ date, sent, arrived time.Time }

func newClock(o *Options) *clock {
	c := &clock{now: o.now, skew: o.MaxSkew}
	if c.now == nil {
		c.now, c.checksServer = time.Now, true
	}
	return c
}

// read is the time as records have it.
func (c *clock) read() time.Time { return store.Time(store.Micros(c.now())) }

// trusted returns now. If now is ahead of the latest time that the server can have by more
// than half of MaxSkew, it returns the earliest time that the server can have. Both follow
// from the last reply and the monotonic clock, so that a step of the wall clock after that
// reply is found, too. A clock that is behind is not corrected: it judges late, which is safe.
func (c *clock) trusted(now time.Time) time.Time {
	last := c.last.Load()
	if last == nil || !now.After(last.date.Add(time.Second+time.Since(last.sent)+c.skew/2)) {
		return now
	}
	return store.Time(store.Micros(last.date.Add(time.Since(last.arrived))))
}

// decisionTime is the time at which to judge a record of another process, after a reply of
// the server. It is MaxSkew in the past, so that no lease counts as over while its owner's
// clock may still show it as valid, and 2·MaxSkew in the past for an outcome, which expires only when it may be deleted.
// The pause after a failed attempt guards nothing, so it is judged by the present time.
func (c *clock) decisionTime(r *store.Record, now time.Time) time.Time {
	now = c.trusted(now)
	switch {
	case r.State == store.Released:
		return now
	case r.State.Terminal():
		return c.deletionCutoff(now)
	}
	return now.Add(-c.skew)
}

// deletionCutoff is the latest Expires of a record that may be deleted: the clock of the
// process that claims the key next is past every clock that gave the record its
// fence.
func (c *clock) deletionCutoff(now time.Time) time.Time { return now.Add(-2 * c.skew) }

// Clocks returns the times that the slowest and the fastest clock of a process can have:
// this process's, less and plus Options.MaxSkew. Package moved waits for the fastest,
// because fences are times of the clock of the process that claims.
func (s *Store) Clocks(context.Context) (slowest, fastest time.Time, err error) {
	now := s.clock.read()
	return now.Add(-s.clock.skew), now.Add(s.clock.skew), nil
}

// observe takes the time of a reply. The server wrote it, cut to seconds, after
// the request was sent and before the reply arrived.
func (c *clock) observe(sent, arrived, date time.Time) {
	c.last.Store(&reading{date: date, sent: sent, arrived: arrived})
	sent, arrived = sent.Round(0), arrived.Round(0) // the monotonic clock does not see a step
	ahead, behind := sent.Sub(date.Add(time.Second)), date.Sub(arrived)
	c.wrong.Store(int64(max(ahead, 0) - max(behind, 0)))
}

// check returns ErrClock if the clock is known to be wrong.
func (c *clock) check() error {
	if wrong := time.Duration(c.wrong.Load()).Abs(); c.checksServer && wrong > c.skew/2 {
		return fmt.Errorf("%w: it differs from DynamoDB's by %v or more; at most half of Options.MaxSkew %v is allowed; synchronize it", ErrClock, wrong.Round(time.Millisecond), c.skew)
	}
	return nil
}

// stepped reports whether the wall clock was set since the last reply: it differs by more than
// half of MaxSkew from the times that the server can have by that reply and the monotonic clock.
func (c *clock) stepped() bool {
	last := c.last.Load()
	if !c.checksServer || last == nil {
		return false
	}
	now := c.now().Round(0)
	earliest, latest := last.date.Add(time.Since(last.arrived)), last.date.Add(time.Second+time.Since(last.sent))
	return now.Before(earliest.Add(-c.skew/2)) || now.After(latest.Add(c.skew/2))
}

// settleTime is the time to write into a change that does not depend on a lease: this
// process's clock or, if that is known to be wrong, the server's, to a second.
func (s *Store) settleTime(ctx context.Context) time.Time {
	wrong := s.checkClock(ctx, store.Processing) != nil // looks again if the clock was wrong
	now := s.clock.read()
	if wrong {
		now = now.Add(-time.Duration(s.clock.wrong.Load()))
	}
	return now
}

// compare is an option of the client that observes each reply.
func (c *clock) compare(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("semelClock",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
			sent := time.Now()
			out, metadata, err := next.HandleDeserialize(ctx, in)
			if reply, ok := out.RawResponse.(*smithyhttp.Response); ok && reply != nil {
				if date, err := http.ParseTime(reply.Header.Get("Date")); err == nil {
					c.observe(sent, time.Now(), date)
				}
				c.hasReply.Store(true) // a server that sends no Date too: nothing is known of the clock
			}
			return out, metadata, err
		}), middleware.After)
}

var (
	processStart = time.Now()
	startMicros  = processStart.UnixMicro()
)

// renewalNumber grows with each renewal of a process, whatever the wall clock
// does, so that a renewal that arrives late cannot shorten a later one.
func renewalNumber() int64 { return startMicros + time.Since(processStart).Microseconds() }

// needsClock reports whether a record in a state needs a clock that is right.
func needsClock(state store.State) bool { return state == store.Started || state == store.Processing }

// checkFor returns ErrClock if a record in a state needs the clock, and it is
// known to be wrong.
func (c *clock) checkFor(state store.State) error {
	if !needsClock(state) {
		return nil
	}
	return c.check()
}

// checkClock is checkFor, with a new look at the server's clock if the last one
// was bad: a refused call sends nothing that could show that the clock is right
// again. It also looks before the first claim of a process, and after the clock was set: if
// the clock is wrong, the reply to a claim shows it too late.
func (s *Store) checkClock(ctx context.Context, state store.State) error {
	unknown := needsClock(state) && s.clock.checksServer && (!s.clock.hasReply.Load() || s.clock.stepped())
	if !unknown && s.clock.checkFor(state) == nil {
		return nil
	}
	if err := store.Ping(ctx, s); err != nil {
		return err
	}
	return s.clock.checkFor(state)
}

// refusedClaim ends a claim that is refused because the clock is wrong. If the key has a record
// of another owner, it comes with the error, without its outcome, so that a Guard with
// UnprotectedOnOutage does not run the handler.
func (s *Store) refusedClaim(ctx context.Context, p *store.Proposal, refused error) (store.Found, error) {
	it, err := s.read(ctx, p.Key)
	if err != nil {
		return store.Found{}, refused
	}
	switch r, err := decodeFor(p.Key, it); {
	case err != nil:
		return store.Found{}, err
	case r.Owner != p.Owner:
		r.Outcome = store.Outcome{}
		return store.Found{Record: r, Now: s.clock.decisionTime(&r, s.clock.read())}, refused
	}
	return store.Found{}, refused
}
