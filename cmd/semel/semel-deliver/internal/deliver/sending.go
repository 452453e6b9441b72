package deliver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// sending is one run of a message. Before the message is sent, it enters: it gets a place
// and passes the gate. A message that asks the reconcile hook has neither, because the
// question may take long and is no request to the service.
type sending struct {
	runner  *runner
	entered time.Time // when the message passed the gate
	status  int       // of the answer, if the message is done
	unasked bool      // the hook was not asked, because others ask it

	freePlace, leaveGate, endQuestion func() // nil: there is nothing to give back
}

// sendingKey finds the *sending in the context of a handler.
type sendingKey struct{}

// enteredAt says when the message whose handler has ctx passed the gate.
func enteredAt(ctx context.Context) time.Time {
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok {
		return s.entered
	}
	return time.Now()
}

var (
	// errStops is the reason for which a message is given back.
	errStops         = errors.New("it was not sent yet, and this program stops")
	errManyQuestions = errors.New("--reconcile-url is asked about other messages")
	errNotEntered    = errors.New("it has no place yet")
)

// enter waits until the service may have one more request, and takes messages. It reports
// false if the program stops or ctx ends first.
func (s *sending) enter(ctx context.Context) bool {
	r := s.runner
	select {
	case r.places <- struct{}{}:
		s.freePlace = sync.OnceFunc(func() { <-r.places })
	case <-r.stop:
		return false
	case <-ctx.Done():
		return false
	}
	var ok bool
	s.entered, s.leaveGate, ok = r.gate.enter(ctx, r.stop)
	return ok
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
	s.freePlace, s.leaveGate, s.endQuestion = nil, nil, nil
}

// handler is fn for a message that has entered. If it has not, because the reconcile hook
// was asked, the claim is given up until it has.
func (s *sending) handler(fn semel.Handler) semel.Handler {
	return func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		if s.freePlace == nil {
			return store.Outcome{}, semel.NoEffect(errNotEntered)
		}
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
