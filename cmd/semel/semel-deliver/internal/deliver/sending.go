package deliver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

// sending is one run of a message. Before the message is sent, it enters: its turn among the
// messages of its tenant comes, it gets a place and passes the gate. A message that asks the
// reconcile hook has none of these, because the question may take long and is no request to
// the service.
type sending struct {
	runner  *runner
	tenant  string
	turn    *turn     // nil: tenants have no limits, or the message has not entered
	entered time.Time // when the message passed the gate
	status  int       // of the answer, if the message is done
	unasked bool      // the hook was not asked, because others ask it

	freePlace, leaveGate, endQuestion func() // nil: there is nothing to give back
}

// sendingKey finds the *sending in the context of a handler.
type sendingKey struct{}

// sendingOf is the run of the message whose handler has ctx.
func sendingOf(ctx context.Context) *sending {
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
		return s
	}
	return &sending{entered: time.Now()} // of a test
}

var (
	// errStops is the reason for which a message is given back.
	errStops         = errors.New("it was not sent yet, and this program stops")
	errManyQuestions = errors.New("--reconcile-url is asked about other messages")
	errNotEntered    = errors.New("it has no place yet")
)

// enter waits until the service may have one more request, and takes messages. It does not wait
// for the turn of the message, but returns it as the error, so that the message keeps no place
// from others. Another error: the program stops, or ctx ends.
func (s *sending) enter(ctx context.Context) error {
	r := s.runner
	earlier, _ := driver.TurnOf(ctx).(*turn)
	for {
		if r.tenants != nil {
			t := r.tenants.enter(s.tenant, earlier)
			if !t.isReady() {
				return t
			}
			s.turn = t
		}
		select {
		case r.places <- struct{}{}:
			s.freePlace = sync.OnceFunc(func() { <-r.places })
		case <-r.stop:
			return errStops
		case <-ctx.Done():
			return errStops
		}
		var ok bool
		if s.entered, s.leaveGate, ok = r.gate.enter(ctx, r.stop); !ok {
			return errStops
		}
		if s.turn == nil || !s.turn.outdated() {
			return nil
		}
		s.leave()
	}
}

// ask begins a question to the reconcile hook, and reports false if there are as many as
// there may be. What enter got is given back.
func (s *sending) ask() bool {
	s.leave()
	q := s.runner.questions
	select {
	case q <- struct{}{}:
		s.endQuestion, s.unasked = func() { <-q }, false
		return true
	default:
		s.unasked = true
		return false
	}
}

// leave gives back all that enter and ask got. It may be called again.
func (s *sending) leave() {
	for _, giveBack := range []func(){s.freePlace, s.leaveGate, s.endQuestion} {
		if giveBack != nil {
			giveBack()
		}
	}
	s.leaveTurn()
	s.freePlace, s.leaveGate, s.endQuestion, s.turn = nil, nil, nil, nil
}

func (s *sending) leaveTurn() {
	if s.turn != nil {
		s.turn.Leave()
	}
}

// pause stops the messages of the tenant after an answer about it, and otherwise all.
func (s *sending) pause(v verdict, g *gate, reason string) {
	if !v.tenant || s.turn == nil {
		g.pause(s.entered, v.after, reason)
		return
	}
	s.turn.pause(s.entered, v.after, reason)
	g.answered(s.entered) // the service takes messages of others
}

// answered ends the pauses that an answer ends.
func (s *sending) answered(g *gate) {
	g.answered(s.entered)
	if s.turn != nil {
		s.turn.answered(s.entered)
	}
}

// handler is fn for a message that has entered. If it has not, because the reconcile hook
// was asked, the claim is given up until it has.
func (s *sending) handler(fn semel.Handler) semel.Handler {
	return func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if s.freePlace == nil {
			return store.Outcome{}, semel.NoEffect(errNotEntered)
		}
		defer s.leaveTurn()
		defer s.freePlace()
		out, err := fn(ctx, x)
		if err == nil {
			out.Code = s.status
		}
		return out, err
	}
}

// limited is a reconciler that asks about a few messages at once.
func limited(ask func(context.Context, *semel.Execution) (semel.Verdict, error)) func(context.Context, *semel.Execution) (semel.Verdict, error) {
	return func(ctx context.Context, x *semel.Execution) (semel.Verdict, error) {
		// A message that waits here has begun its question in Run.
		if s, ok := ctx.Value(sendingKey{}).(*sending); ok && s.endQuestion == nil && !s.ask() {
			return semel.Verdict{}, errManyQuestions
		}
		return ask(ctx, x)
	}
}
