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

// Functions of the options that panic do not end the process, and the message is tried again.
func TestHandle_OptionPanics_DecidesAsUsual(t *testing.T) {
	pauses := []time.Duration{}
	backoff := func(n int) time.Duration { return pauses[n-1] }
	observe := func(context.Context, semel.Event) { panic("boom") }
	failing := func(context.Context, *semel.Execution, *consume.Message) error { return errors.New("down") }
	g := newGuard(t, nil, &semel.Options{Backoff: backoff, Observe: observe})
	c := newConsumer(t, g, failing, consume.Options{Backoff: backoff})
	if d := c.Handle(t.Context(), keyed("k")); d.Action != driver.Retry || d.Delay != time.Second {
		t.Errorf("%+v; want a retry after the default pause, 1s", d)
	}
}

// Serve calls Observe on its workers, where a panic would end the process.
func TestServe_ObservePanics_GoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(keyed("a"), keyed("b"))
		serve(t, newConsumer(t, newGuard(t, nil, nil), done, consume.Options{Observe: func(context.Context, consume.Event) { panic("boom") }}), s)
		synctest.Wait()
		if s.count("ack a") != 1 || s.count("ack b") != 1 {
			t.Errorf("told %v", s.heard())
		}
	})
}
