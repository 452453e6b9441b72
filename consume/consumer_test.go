package consume_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	semeldriver "github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store/memstore"
)

func done(context.Context, *semel.Execution, *consume.Message) error { return nil }

func fails(context.Context, *semel.Execution, *consume.Message) error { return errPlain }

// retains is a runner that tells its retention.
type retains struct{ *semel.Guard }

func (retains) Retention() time.Duration { return time.Hour }

func TestNew_InvalidArguments_NamesEach(t *testing.T) {
	_, err := consume.New(nil, nil, nil, &consume.Options{
		MaxDeliveries: -1, Retention: time.Millisecond, Concurrency: -1, InFlight: -2, Drain: -1,
	})
	for _, want := range []string{"run: is nil", "call: is nil", "handler: is nil", "MaxDeliveries", "Retention", "Concurrency", "InFlight", "Drain"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not speak of %q: %v", want, err)
		}
	}
}

// A Guard keeps outcomes for 24 h by default, a broker messages for a week:
// the consumer must not guess.
func TestNew_UnknownRetention_IsRefused(t *testing.T) {
	g := newGuard(t, nil, nil)
	if _, tells := any(g).(interface{ Retention() time.Duration }); !tells {
		if _, err := consume.New(g, byHeader, done, nil); err == nil || !strings.Contains(err.Error(), "Retention") {
			t.Errorf("without a retention: %v", err)
		}
	}
	c, err := consume.New(retains{g}, byHeader, done, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := keyed("old")
	m.Published = time.Now().Add(-2 * time.Hour)
	if d := c.Handle(t.Context(), m); d.Reason != driver.ReasonLate {
		t.Errorf("the runner's retention does not count: %v", d.Reason)
	}
}

func TestHandle_Duplicate_RunsOnce(t *testing.T) {
	var ran atomic.Int64
	c := newConsumer(t, newGuard(t, nil, nil), func(ctx context.Context, x *semel.Execution, m *consume.Message) error {
		ran.Add(1)
		own, ok := consume.FromContext(ctx)
		in, _ := semel.FromContext(ctx)
		if !ok || own != m || in != x || x.Key() != "k" {
			t.Errorf("the context has the message %v and the run %v", own, in)
		}
		return nil
	}, consume.Options{})
	for i, want := range []driver.Reason{driver.ReasonDone, driver.ReasonDuplicate, driver.ReasonDuplicate} {
		if d := c.Handle(t.Context(), keyed("k")); d.Action != driver.Ack || d.Reason != want {
			t.Errorf("delivery %d: %v for %q", i, d.Action, d.Reason)
		}
	}
	if ran.Load() != 1 {
		t.Errorf("ran %d times", ran.Load())
	}
	if _, ok := consume.FromContext(t.Context()); ok {
		t.Error("a context without a message has one")
	}
}

func TestHandle_InvalidKey_DoesNotRun(t *testing.T) {
	c := newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
		t.Error("it ran")
		return nil
	}, consume.Options{})
	for want, m := range map[driver.Reason]*consume.Message{
		driver.ReasonNoKey:   {},
		driver.ReasonInvalid: keyed(strings.Repeat("x", 300)),
	} {
		if d := c.Handle(t.Context(), m); d.Action != driver.DeadLetter || d.Reason != want {
			t.Errorf("%v for %q, want dead-letter for %q", d.Action, d.Reason, want)
		}
	}
	panics := func(*consume.Message) (semel.Call, error) { panic("oh") }
	c, err := consume.New(newGuard(t, nil, nil), panics, done, &consume.Options{Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Handle(t.Context(), keyed("k")); d.Action != driver.DeadLetter || !strings.Contains(d.Err.Error(), "oh") {
		t.Errorf("a CallFunc that panics: %v, %v", d.Action, d.Err)
	}
}

func TestHandle_LastAttemptFails_DeadLetters(t *testing.T) {
	var ran int
	c := newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error {
		ran++
		return fmt.Errorf("failure number %d", ran)
	}, consume.Options{MaxAttempts: 3})
	for i, want := range []driver.Action{driver.Retry, driver.Retry, driver.DeadLetter, driver.DeadLetter} {
		d := c.Handle(t.Context(), keyed("k"))
		if d.Action != want {
			t.Errorf("delivery %d: %v, want %v", i+1, d.Action, want)
		}
		if d.Action == driver.DeadLetter && (d.Reason != driver.ReasonExhausted || !strings.Contains(d.Err.Error(), "failure number 3")) {
			t.Errorf("delivery %d: %q, %v", i+1, d.Reason, d.Err)
		}
	}
	if ran != 3 {
		t.Errorf("ran %d times, want 3", ran)
	}
}

func TestHandle_NegativeMaxAttempts_HasNoLimit(t *testing.T) {
	c := newConsumer(t, newGuard(t, nil, nil), fails, consume.Options{MaxAttempts: -1})
	for i := range 50 {
		if d := c.Handle(t.Context(), keyed("k")); d.Action != driver.Retry || d.Attempt != i+1 {
			t.Fatalf("delivery %d: %v of attempt %d", i+1, d.Action, d.Attempt)
		}
	}
}

// NoEffect says that nothing was changed, so that a downstream that is away
// for an hour does not fill the dead letters.
func TestHandle_NoEffect_CountsNoAttempt(t *testing.T) {
	for name, err := range map[string]error{
		"plain": semel.NoEffect(errPlain), "wrapped": fmt.Errorf("call: %w", semel.NoEffect(errPlain)),
		"joined":    errors.Join(semel.NoEffect(errPlain), semel.NoEffect(errPlain)),
		"a Failure": semel.NoEffect(&semel.Failure{Code: "busy"}), // of a call of its own, and not kept: a dead letter would be a lie
	} {
		c := newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error { return err }, consume.Options{MaxAttempts: 1})
		for i := range 10 {
			d := c.Handle(t.Context(), keyed("k"))
			if d.Action != driver.Retry || d.Attempt != 1 {
				t.Fatalf("%s: delivery %d: %v of attempt %d", name, i+1, d.Action, d.Attempt)
			}
			if semeldriver.IsNoEffect(d.Err) {
				t.Errorf("%s: who passes on %v says it of his own work", name, d.Err)
			}
		}
	}
	half := errors.Join(semel.NoEffect(errPlain), errPlain)
	c := newConsumer(t, newGuard(t, nil, nil), func(context.Context, *semel.Execution, *consume.Message) error { return half }, consume.Options{MaxAttempts: 1})
	if d := c.Handle(t.Context(), keyed("k")); d.Action != driver.DeadLetter {
		t.Errorf("half an error without effect: %v", d.Action)
	}
}

// Under Park no count of attempts may turn doubt into failure.
func TestHandle_DoubtUnderPark_Quarantines(t *testing.T) {
	g := newGuard(t, nil, &semel.Options{OnDoubt: semel.Park})
	c := newConsumer(t, g, fails, consume.Options{MaxAttempts: 1})
	for range 2 {
		if d := c.Handle(t.Context(), keyed("k")); d.Action != driver.Quarantine || d.Reason != driver.ReasonUnknown {
			t.Errorf("%v for %q, want quarantine", d.Action, d.Reason)
		}
	}
}

func TestHandle_Panic_IsDoubt(t *testing.T) {
	panics := func(context.Context, *semel.Execution, *consume.Message) error { panic("boom") }
	d := newConsumer(t, newGuard(t, nil, nil), panics, consume.Options{}).Handle(t.Context(), keyed("k"))
	var p *consume.PanicError
	if d.Action != driver.Retry || !errors.As(d.Err, &p) || p.Value != "boom" || !strings.Contains(string(p.Stack), "consumer_test.go") {
		t.Errorf("%v, %v", d.Action, d.Err)
	}
	if strings.Contains(p.Error(), "consumer_test.go") {
		t.Error("the text has the stack")
	}
	g := newGuard(t, nil, &semel.Options{OnDoubt: semel.Park})
	if d := newConsumer(t, g, panics, consume.Options{}).Handle(t.Context(), keyed("k")); d.Action != driver.Quarantine {
		t.Errorf("under Park: %v", d.Action)
	}
}

func TestHandle_ErrorOfAnotherCall_Retries(t *testing.T) {
	st := memstore.New(nil)
	g := newGuard(t, st, nil)
	inner := func(body string) semel.Call {
		return semel.Call{Operation: "inner", Tenant: semel.Shared, Key: "i", Payload: semel.Bytes([]byte(body))}
	}
	once := func(ctx context.Context, body string) error {
		return semel.Once(ctx, g, inner(body), func(context.Context, *semel.Execution) error { return nil })
	}
	if err := once(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	c := newConsumer(t, g, func(ctx context.Context, _ *semel.Execution, _ *consume.Message) error { return once(ctx, "second") }, consume.Options{})
	d := c.Handle(t.Context(), keyed("k"))
	if !errors.Is(d.Err, semel.ErrMismatch) || d.Action != driver.Retry {
		t.Errorf("%v, %v; want retry, for the mismatch is of another call", d.Action, d.Err)
	}
}

func TestHandle_OlderThanRetention_DoesNotRun(t *testing.T) {
	c := newConsumer(t, newGuard(t, nil, nil), done, consume.Options{Retention: time.Hour})
	m := keyed("k")
	m.Published = time.Now().Add(-time.Hour - time.Minute)
	if d := c.Handle(t.Context(), m); d.Action != driver.Quarantine || d.Reason != driver.ReasonLate {
		t.Errorf("%v for %q, want quarantine", d.Action, d.Reason)
	}
	m.Published = time.Now().Add(-time.Hour + time.Minute)
	if d := c.Handle(t.Context(), m); d.Reason != driver.ReasonDone {
		t.Errorf("a younger one: %q", d.Reason)
	}
}

// A message that a handler produces has the same key in each attempt.
func TestStamp_NextAttempt_HasTheSameKey(t *testing.T) {
	var stamps []string
	c := newConsumer(t, newGuard(t, nil, nil), func(_ context.Context, x *semel.Execution, _ *consume.Message) error {
		stamps = append(stamps, fmt.Sprint(consume.Stamp(x, "mail")), fmt.Sprint(consume.Stamp(x, "bill")))
		return errPlain
	}, consume.Options{})
	c.Handle(t.Context(), keyed("k"))
	c.Handle(t.Context(), keyed("k"))
	if len(stamps) != 4 || stamps[0] != stamps[2] || stamps[1] != stamps[3] || stamps[0] == stamps[1] || !strings.Contains(stamps[0], "{semel-caused-by k}") {
		t.Errorf("the stamps are %v", stamps)
	}
}
