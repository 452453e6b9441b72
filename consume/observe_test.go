package consume_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/internal/logtest"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Whoever sets no Observe learns of dead letters and outages from the log. A line has no
// key and no body.
func TestLogEvents_LostMessagesAndOutages_AreWarnings(t *testing.T) {
	m := &consume.Message{Key: "secret key", Body: []byte("secret body"), Origin: consume.Origin{Topic: "orders", ID: "orders/3/17"}}
	decided := func(a driver.Action, r driver.Reason) consume.Event {
		return consume.Event{Kind: consume.EventDecided, Message: m, Disposition: driver.Disposition{Action: a, Reason: r, Attempt: 3, Err: errors.New("boom")}}
	}
	for _, c := range []struct {
		event consume.Event
		want  slog.Level
		says  string
	}{
		{decided(driver.DeadLetter, driver.ReasonExhausted), slog.LevelWarn, "orders/3/17"},
		{decided(driver.Quarantine, driver.ReasonUnknown), slog.LevelWarn, "outcome_unknown"},
		{decided(driver.Retry, driver.ReasonError), slog.LevelDebug, "boom"},
		{decided(driver.Ack, driver.ReasonDone), slog.LevelDebug, "done"},
		{consume.Event{Kind: consume.EventOutage, Message: m, Err: errors.New("refused")}, slog.LevelWarn, "refused"},
		{consume.Event{Kind: consume.EventResumed}, slog.LevelInfo, "resumed"},
		{consume.Event{Kind: consume.EventReceiveFailed, Err: errors.New("no broker")}, slog.LevelWarn, "no broker"},
		{consume.Event{Kind: consume.EventGivenUp, Message: m, Err: errors.New("gone")}, slog.LevelWarn, "gone"},
		{consume.Event{Kind: consume.EventExtendFailed, Message: m, Err: errors.New("no right")}, slog.LevelWarn, "no right"},
		{consume.Event{Kind: consume.EventSettled, Message: m}, slog.LevelDebug, "settled"},
	} {
		for _, level := range []slog.Level{c.want, c.want + 1} {
			var out bytes.Buffer
			consume.LogEvents(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))(t.Context(), c.event)
			if logs := level == c.want; logs != strings.Contains(out.String(), c.says) || strings.Contains(out.String(), "secret") {
				t.Errorf("%v: at level %v the log is %q", c.event.Kind, level, out.String())
			}
		}
	}
}

// Not parallel, because it replaces the default logger.
func TestServe_NoObserve_DeadLetterIsLogged(t *testing.T) {
	out := logtest.Capture(t)
	c := newConsumer(t, newGuard(t, nil, nil), done, consume.Options{})
	s := newSource(&consume.Message{Origin: consume.Origin{Topic: "orders", ID: "orders/3/17"}}) // without a key
	r := serve(t, c, s)
	for len(s.heard()) < 2 { // its copy, and its ack
		select {
		case <-r.done:
			t.Fatal(r.err)
		case <-time.After(time.Millisecond):
		}
	}
	r.end()
	if !strings.Contains(out.String(), "orders/3/17") || !strings.Contains(out.String(), "no_key") {
		t.Errorf("the log is %q", out.String())
	}
}

// A line about a dead letter names its record as the Guard's lines do, so that an operator
// finds the record by the hash, and shows neither key nor hashed tenant.
func TestServe_DeadLetter_LogNamesItsRecord(t *testing.T) {
	t.Parallel()
	secret := []byte(strings.Repeat("s", 32))
	for name, o := range map[string]*semel.Options{"keys as they are": {}, "hashed keys": {HashKeys: secret}} {
		var out bytes.Buffer
		g, err := semel.New(memstore.New(nil), o)
		if err != nil {
			t.Fatal(err)
		}
		call := semel.Call{Operation: "billing", Tenant: "ann", Key: "order-1", Payload: semel.NoPayload()}
		c, err := consume.New(g, func(*consume.Message) (semel.Call, error) { return call, nil },
			func(context.Context, *semel.Execution, *consume.Message) error {
				return semel.Final(errors.New("no account"))
			},
			&consume.Options{Observe: consume.LogEvents(slog.New(slog.NewTextHandler(&out, nil)))})
		if err != nil {
			t.Fatal(err)
		}
		s := newSource(&consume.Message{Origin: consume.Origin{Topic: "orders"}})
		r := serve(t, c, s)
		for len(s.heard()) < 2 { // its copy, and its ack
			select {
			case <-r.done:
				t.Fatal(r.err)
			case <-time.After(time.Millisecond):
			}
		}
		r.end()
		k := store.Key{Operation: "billing", Tenant: "ann", Value: "order-1"}.Hashed(o.HashKeys)
		want := fmt.Sprintf("topic=orders operation=billing tenant=%s key=%s action=dead-letter", k.Tenant, k.Short())
		if log := out.String(); !strings.Contains(log, want) || strings.Contains(log, "order-1") || strings.Contains(log, "id=") {
			t.Errorf("%s: the log is %q, want %s", name, log, want)
		}
	}
}
