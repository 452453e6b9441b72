package consume_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
)

// nilPointerError panics if it is a nil pointer.
type nilPointerError struct{ text string }

func (e *nilPointerError) Error() string { return e.text }

func nilPointer() error {
	var e *nilPointerError
	return e
}

// A nil pointer in an error must not end the process: its message would kill each process
// that gets it.
func TestServe_ErrorIsNilPointer_MessageIsDeadLetter(t *testing.T) {
	fine := func(context.Context, *semel.Execution, *consume.Message) error { return nil }
	for name, c := range map[string]struct {
		call    consume.CallFunc
		handler consume.Handler
		reason  driver.Reason
	}{
		"of a handler": {byHeader, func(context.Context, *semel.Execution, *consume.Message) error { return nilPointer() }, driver.ReasonExhausted},
		"of a CallFunc": {func(*consume.Message) (semel.Call, error) {
			return semel.Call{Operation: "test", Tenant: semel.Shared}, nilPointer()
		}, fine, driver.ReasonInvalid},
		"of a key source": {consume.Keyed("test", func(*consume.Message) (string, error) { return "", nilPointer() }), fine, driver.ReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSource(keyed("k"))
				s.info.HoldsOnly = true // the second attempt is here
				consumer, err := consume.New(newGuard(t, nil, nil), c.call, c.handler, &consume.Options{MaxAttempts: 2})
				if err != nil {
					t.Fatal(err)
				}
				r := serve(t, consumer, s)
				pass(time.Hour)
				r.end()
				pass(time.Minute)
				if len(s.letters) != 1 {
					t.Fatalf("%d dead letters, want 1: %v", len(s.letters), s.heard())
				}
				reason, _ := s.letters[0].Header(driver.LetterReason)
				if text, _ := s.letters[0].Header(driver.LetterError); reason != string(c.reason) || text == "" {
					t.Errorf("the dead letter's reason is %q, its error %q; want %q", reason, text, c.reason)
				}
			})
		})
	}
}

// A message that its adapter cannot read goes the way of every other dead letter.
func TestServe_InvalidMessage_IsDeadLetterWithoutRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := keyed("k")
		m.Invalid = errPlain
		s := newSource(m)
		var ev events
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
			t.Error("the handler ran")
			return nil
		}, consume.Options{Observe: ev.observe}), s)
		pass(time.Minute)
		r.end()
		pass(time.Minute)
		if len(s.letters) != 1 || s.count("ack ") != 1 {
			t.Fatalf("%d dead letters, want 1: %v", len(s.letters), s.heard())
		}
		group, _ := s.letters[0].Header(driver.LetterGroup)
		if reason, _ := s.letters[0].Header(driver.LetterReason); group != "test" || reason != string(driver.ReasonInvalid) {
			t.Errorf("the letter's group is %q, its reason %q", group, reason)
		}
	})
}

// A CallFunc that expects a body panics for a message that has none. The letter must say what is
// wrong with the message.
func TestHandle_CallFuncPanicsForInvalidMessage_LetterNamesTheMessage(t *testing.T) {
	c, err := consume.New(newGuard(t, nil, nil), func(m *consume.Message) (semel.Call, error) { panic(m.Body[0]) },
		func(context.Context, *semel.Execution, *consume.Message) error { return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := keyed("k")
	m.Body, m.Invalid = nil, errPlain
	if d := c.Handle(t.Context(), m); d.Reason != driver.ReasonInvalid || !errors.Is(d.Err, errPlain) {
		t.Errorf("%v: %v, want %v", d.Reason, d.Err, errPlain)
	}
}

// partly returns an error beside the first messages.
type partly struct{ *source }

func (p partly) Next(ctx context.Context, limit int) ([]driver.Delivery, error) {
	ds, err := p.source.Next(ctx, limit)
	if err == nil && p.nexts.Load() == 1 {
		err = errPlain
	}
	return ds, err
}

func TestServe_ErrorBesideMessages_IsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, failed := newSource(keyed("k")), 0
		r := serve(t, newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error { return nil },
			consume.Options{Observe: func(_ context.Context, e consume.Event) {
				if e.Kind == consume.EventReceiveFailed {
					failed++
				}
			}}), partly{s})
		pass(time.Minute)
		r.end()
		pass(time.Minute)
		if failed != 1 || s.count("ack k") != 1 {
			t.Errorf("%d events of a failed receive, want 1: %v", failed, s.heard())
		}
	})
}
