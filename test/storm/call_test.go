package storm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/storetest"
)

const operation = "storm"

// call is one call of a key.
type call struct {
	s       *storm
	r       *rand.Rand
	key     string
	guard   *semel.Guard
	payload int  // 0: a call with a token, which has no payload
	good    bool // the handler does not fail
	reread  bool // it ran again only to read
}

// token is a reservation to redeem.
type token struct{ key, text string }

// form is how a key is called: each call of it gets the same kind of answer.
func form(key string) string {
	return []string{"run", "do", "once"}[(int(key[len(key)-1])+len(key))%3]
}

// call makes one call as callers do in a storm.
func (s *storm) call(r *rand.Rand, key string) {
	p := s.procs[r.IntN(processes)]
	c := &call{s: s, r: r, key: key, payload: 1, guard: p.guardOf(key, r)}
	if r.IntN(12) == 0 {
		c.payload = 2
	}
	patience := 300 * time.Millisecond
	if r.IntN(4) == 0 {
		patience = time.Duration(r.IntN(80)) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	of := c.of()
	if r.IntN(3) == 0 {
		of.Wait = time.Duration(r.IntN(120)) * time.Millisecond
	}
	if r.IntN(10) == 0 {
		c.reserve(ctx, of)
		return
	}
	c.run(ctx, of)
}

func (c *call) of() semel.Call {
	return semel.Call{Operation: operation, Tenant: "tenant", Key: c.key, Payload: semel.Bytes([]byte{byte(c.payload)})}
}

// guardOf is one under whose rules a key may be called.
func (p *process) guardOf(key string, r *rand.Rand) *semel.Guard {
	class, _, _ := strings.Cut(key, "-")
	switch n := r.IntN(8); {
	case (class == "park" || class == "mixed" && n < 4) && !p.s.rash:
		return p.park
	case class == "few":
		return p.few
	case class == "brief":
		return p.brief
	case class == "retry" && n == 0:
		return p.fresh
	}
	return p.retry
}

func (c *call) reserve(ctx context.Context, of semel.Call) {
	t, err := c.guard.Reserve(ctx, of)
	switch {
	case t.Result != nil && form(c.key) == "once":
		c.answered("", err)
	case t.Result != nil:
		c.answered(string(t.Result.Body), err)
	case err != nil:
		c.answered("", err)
	default:
		c.s.amu.Lock()
		defer c.s.amu.Unlock()
		c.s.met["reserved"]++
		c.s.tokens = append(c.s.tokens, token{c.key, t.Token})
	}
}

// redeem is the bearer of a token, who comes late, twice, or never.
func (s *storm) redeem(r *rand.Rand, _ string) {
	s.amu.Lock()
	if len(s.tokens) == 0 {
		s.amu.Unlock()
		return
	}
	i := r.IntN(len(s.tokens))
	of := s.tokens[i]
	if r.IntN(2) == 0 {
		s.tokens[i] = s.tokens[len(s.tokens)-1]
		s.tokens = s.tokens[:len(s.tokens)-1]
	}
	s.amu.Unlock()
	p := s.procs[r.IntN(processes)]
	c := &call{s: s, r: r, key: of.key, guard: p.guardOf(of.key, r)}
	redeemed, err := c.guard.Redeem(of.text)
	if err != nil {
		s.errorf("%s: Redeem: %v", of.key, err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	c.run(ctx, redeemed)
}

// thrown is what handlers panic with.
const thrown = "storm: the handler panics"

// run makes the call on a goroutine of its own, which its handler may end, and
// notes what it was told.
func (c *call) run(ctx context.Context, of semel.Call) {
	var ev events
	ctx = context.WithValue(ctx, eventsKey{}, &ev)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil && p != thrown {
				c.s.errorf("%s: panic: %v", c.key, p)
			}
		}()
		var text string
		var err error
		switch form(c.key) {
		case "run":
			var res semel.Result
			res, err = c.guard.Run(ctx, of, c.handle)
			text = string(res.Body)
		case "do":
			text, err = semel.Do(ctx, c.guard, of, func(ctx context.Context, x *semel.Execution) (string, error) {
				o, err := c.handle(ctx, x)
				return strings.Trim(string(o.Body), `"`), err
			})
			text = `"` + text + `"`
		case "once":
			err = semel.Once(ctx, c.guard, of, func(ctx context.Context, x *semel.Execution) error {
				_, err := c.handle(ctx, x)
				return err
			})
		}
		c.answered(text, err)
	}()
	<-done
	c.s.amu.Lock()
	ends := ev.ends
	c.s.amu.Unlock()
	if len(ends) != 1 {
		c.s.errorf("%s: one call ended with %d events: %v", c.key, len(ends), ends)
	}
}

// answered notes what a call was told: if it is kept, each gets the same.
func (c *call) answered(text string, err error) {
	s := c.s
	f, isFinal := errors.AsType[*semel.Failure](err)
	_, reasoned := errors.AsType[*semel.Error](err)
	answer := ""
	switch {
	case c.reread:
		s.meets("read again")
		return
	case err == nil:
		answer = "done " + text
	case errors.Is(err, semel.ErrNotKept):
		answer = "gone"
	case isFinal && !reasoned:
		answer = "failed " + f.Code + ": " + f.Message
	default:
		c.failed(err)
		return
	}
	s.amu.Lock()
	defer s.amu.Unlock()
	if s.answers[c.key] == nil {
		s.answers[c.key] = map[string]int{}
	}
	s.answers[c.key][answer]++
	s.met[strings.Fields(answer)[0]]++
}

// failed wants an error that a caller can do something about.
func (c *call) failed(err error) {
	for _, reason := range []error{
		semel.ErrInProgress, semel.ErrReleased, semel.ErrMismatch, semel.ErrParked, semel.ErrExpired, semel.ErrUnavailable, semel.ErrCanceled,
		semel.ErrOutcomeNotStored, semel.ErrLeaseLost,
	} {
		if errors.Is(err, reason) {
			c.s.meets(reason.Error())
			if c.payload != 0 && errors.Is(err, semel.ErrExpired) {
				break
			}
			return
		}
	}
	if errors.Is(err, errHandler) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		c.s.meets("the handler's own error")
		return
	}
	if errors.Is(err, storetest.ErrInjected) {
		c.s.errorf("%s: a bare error of the store: %v", c.key, err)
		return
	}
	c.s.errorf("%s: %v", c.key, err)
}

// last calls a key in the calm, until it has its end.
func (s *storm) last(p *process, key string) {
	r := rand.New(rand.NewPCG(uint64(len(key)), 7))
	c := &call{s: s, r: r, key: key, payload: 1, good: true}
	switch class, _, _ := strings.Cut(key, "-"); class {
	case "park", "mixed":
		c.guard = p.park
	case "few":
		c.guard = p.few
	case "brief":
		c.guard = p.brief
	default:
		c.guard = p.retry
	}
	ctx, cancel := context.WithTimeout(context.Background(), tooLong/2)
	defer cancel()
	for {
		of := c.of()
		of.Wait = time.Second
		_, err := c.guard.Run(ctx, of, c.handle)
		if f, is := errors.AsType[*semel.Failure](err); err == nil || is && f != nil || errors.Is(err, semel.ErrNotKept) {
			break
		}
		if errors.Is(err, semel.ErrMismatch) {
			c.payload = 3 - c.payload
		}
		if ctx.Err() != nil {
			s.errorf("%s: in the calm it comes to no end: %v", key, err)
			return
		}
	}
	for range 2 { // and everybody is told so
		c.run(ctx, c.of())
	}
}

func outcome(run int64) store.Outcome {
	return store.Outcome{Body: fmt.Appendf(nil, `"run %d"`, run), Codec: "json"}
}
