package consume_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// A message whose attempts an outage has used up runs again when an operator sends
// its dead letter back, and only then.
func TestHandle_RedrivenMessage_RunsAgainOnce(t *testing.T) {
	down, runs := true, 0
	h := func(context.Context, *semel.Execution, *consume.Message) error {
		if runs++; down {
			return errPlain
		}
		return nil
	}
	g := newGuard(t, memstore.New(nil), nil)
	c := newConsumer(t, g, h, consume.Options{MaxAttempts: 2, Reopen: g})
	without := newConsumer(t, g, h, consume.Options{MaxAttempts: 2})
	m := keyed("k")
	c.Handle(t.Context(), m)
	d := c.Handle(t.Context(), m)
	if d.Reason != driver.ReasonExhausted || d.Fence == 0 {
		t.Fatalf("after two attempts: %q with fence %d", d.Reason, d.Fence)
	}
	letter := keyed("k")
	letter.Headers = driver.Letter(m, d, "test")
	redriven := keyed("k")
	redriven.Headers = append(driver.Letter(m, d, "test"), store.Header{Name: consume.RedriveHeader, Value: "ann: the bank is back"})

	if d := c.Handle(t.Context(), m); d.Reason != driver.ReasonExhausted || d.Fence == 0 {
		t.Errorf("a duplicate: %q with fence %d", d.Reason, d.Fence)
	}
	if d := c.Handle(t.Context(), letter); d.Reason != driver.ReasonExhausted {
		t.Errorf("the letter without the header: %q", d.Reason)
	}
	if d := without.Handle(t.Context(), redriven); d.Reason != driver.ReasonExhausted {
		t.Errorf("where the option is not set: %q", d.Reason)
	}
	if runs != 2 {
		t.Fatalf("%d runs, want 2", runs)
	}
	c.Handle(t.Context(), redriven)
	if d = c.Handle(t.Context(), redriven); d.Reason != driver.ReasonExhausted || runs != 4 {
		t.Errorf("redriven while the bank is down: %q after %d runs, want 4", d.Reason, runs)
	}
	if d := c.Handle(t.Context(), redriven); d.Reason != driver.ReasonExhausted || runs != 4 {
		t.Errorf("redelivered after that: %q after %d runs, want 4", d.Reason, runs)
	}
	down = false
	again := keyed("k")
	again.Headers = append(driver.Letter(redriven, d, "test"), store.Header{Name: consume.RedriveHeader, Value: "ann: now"})
	if d := c.Handle(t.Context(), again); d.Reason != driver.ReasonDone || runs != 5 {
		t.Errorf("redriven when the bank is back: %q after %d runs, want 5: %v", d.Reason, runs, d.Err)
	}
	if d := c.Handle(t.Context(), again); d.Reason != driver.ReasonDuplicate {
		t.Errorf("redelivered when it is done: %q", d.Reason)
	}
}

// A message whose handler may have undone its steps is not run again. The new letter says why.
func TestHandle_RedrivenMessageWithSteps_IsDeadLetteredWithTheReason(t *testing.T) {
	g := newGuard(t, memstore.New(nil), nil)
	runs := 0
	c := newConsumer(t, g, func(ctx context.Context, x *semel.Execution, _ *consume.Message) error {
		runs++
		_ = semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error { return nil })
		return semel.Final(errPlain)
	}, consume.Options{Reopen: g})
	m := keyed("k")
	redriven := keyed("k")
	redriven.Headers = append(driver.Letter(m, c.Handle(t.Context(), m), "test"), store.Header{Name: consume.RedriveHeader, Value: "ann: there are goods again"})
	d := c.Handle(t.Context(), redriven)
	if d.Action != driver.DeadLetter || d.Reason != driver.ReasonInvalid || !strings.Contains(d.Err.Error(), "has recorded steps (charge)") || runs != 1 {
		t.Errorf("redriven: %v, %q after %d runs: %v", d.Action, d.Reason, runs, d.Err)
	}
}

// The broker gives the copy an ID of its own each time that it is sent. With BrokerID the
// copy still has the key of its message, so that it runs once, and a letter of the copy too.
func TestHandle_RedrivenMessage_BrokerIDIsTheOriginal(t *testing.T) {
	for _, id := range []string{"t/0/7", " t/0/7\u00e9 ", `"t/0/7"`, strings.Repeat("long/", 400)} {
		runs := 0
		g := newGuard(t, memstore.New(nil), nil)
		c, err := consume.New(g, consume.Keyed("test", consume.BrokerID()), func(context.Context, *semel.Execution, *consume.Message) error {
			if runs++; runs < 3 {
				return semel.Final(errPlain)
			}
			return nil
		}, &consume.Options{Reopen: g})
		if err != nil {
			t.Fatal(err)
		}
		m := &consume.Message{Origin: consume.Origin{Topic: "t", ID: id}, Body: []byte("b")}
		d := c.Handle(t.Context(), m)
		key := m.Key
		for range 2 {
			letter := append(driver.Letter(m, d, "test"), store.Header{Name: consume.RedriveHeader, Value: "ann: fixed"})
			before := runs
			for _, sent := range []string{"t/0/8", "t/0/9"} {
				again := &consume.Message{Origin: consume.Origin{Topic: "t", ID: sent}, Body: []byte("b"), Headers: letter}
				m, d = again, c.Handle(t.Context(), again)
			}
			if runs != before+1 || m.Key != key {
				t.Errorf("%.20q: a letter that was sent twice ran %d times with the key %q, want once with %q", id, runs-before, m.Key, key)
			}
		}
		if runs != 3 || d.Reason != driver.ReasonDuplicate {
			t.Errorf("%.20q: %d runs, and in the end %q, want 3 and a duplicate", id, runs, d.Reason)
		}
	}
}

// A broker may take any bytes as an address: RabbitMQ does in a routing key. The letter
// has the address in a form that each broker keeps, and the redriven message has the same
// fingerprint, so that it runs.
func TestHandle_RedrivenLetterOfOddAddress_RunsAgain(t *testing.T) {
	for _, address := range []string{
		"shop/orders", "shop/orders\tnew", "shop/caf\xe9", "shop/caf\u00e9", "shop/ ", `shop/a"b\n`, `"shop/orders"`, strings.Repeat("long.", 400),
	} {
		fails := true
		g := newGuard(t, memstore.New(nil), nil)
		c := newConsumer(t, g, func(context.Context, *semel.Execution, *consume.Message) error {
			if fails {
				return semel.Final(errPlain)
			}
			return nil
		}, consume.Options{Reopen: g})
		m := keyed("k")
		m.Origin = consume.Origin{Topic: "orders", Address: address}
		d := c.Handle(t.Context(), m)
		for range 2 { // the letter of a letter has the same address
			again := keyed("k")
			again.Origin = consume.Origin{Topic: "orders", Address: "/orders"}
			again.Headers = append(driver.Letter(m, d, "test"), store.Header{Name: consume.RedriveHeader, Value: "ann: fixed"})
			if text, _ := again.Header(driver.LetterAddress); strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("%q: the header is %q", address, text)
			}
			m, d = again, c.Handle(t.Context(), again)
			if d.Reason != driver.ReasonFailed {
				t.Errorf("%q: redriven while the handler fails: %q, %v", address, d.Reason, d.Err)
			}
		}
		fails = false
		m.Headers = append(driver.Letter(m, d, "test"), store.Header{Name: consume.RedriveHeader, Value: "ann: fixed"})
		if d := c.Handle(t.Context(), m); d.Reason != driver.ReasonDone {
			t.Errorf("%q: redriven: %q, %v", address, d.Reason, d.Err)
		}
	}
}

// RabbitMQ's copies keep the time at which the producer published the message.
func TestHandle_RedrivenMessageOlderThanRetention_Runs(t *testing.T) {
	fails := true
	g := newGuard(t, memstore.New(nil), nil)
	h := func(context.Context, *semel.Execution, *consume.Message) error {
		if fails {
			return semel.Final(errPlain)
		}
		return nil
	}
	c, without := newConsumer(t, g, h, consume.Options{Reopen: g}), newConsumer(t, g, h, consume.Options{})
	m := keyed("k")
	m.Published = time.Now().Add(time.Hour - consume.DefaultRetention)
	letter := keyed("k")
	letter.Headers, fails = driver.Letter(m, c.Handle(t.Context(), m), "test"), false
	letter.Published = m.Published.Add(-24 * time.Hour) // a day passes
	if d := c.Handle(t.Context(), letter); d.Reason != driver.ReasonLate {
		t.Errorf("a letter that nobody has sent back: %q", d.Reason)
	}
	letter.Headers = append(letter.Headers, store.Header{Name: consume.RedriveHeader, Value: "ann: fixed"})
	if d := without.Handle(t.Context(), letter); d.Reason != driver.ReasonLate {
		t.Errorf("without Reopen: %q", d.Reason)
	}
	for _, want := range []driver.Reason{driver.ReasonDone, driver.ReasonDuplicate} {
		if d := c.Handle(t.Context(), letter); d.Reason != want {
			t.Errorf("redriven: %q, want %q: %v", d.Reason, want, d.Err)
		}
	}
}

// unreadable is a store in which the record of each key cannot be read.
type unreadable struct{ store.Store }

var errUnreadable = fmt.Errorf("%w: version 99", store.ErrCorrupt)

func (unreadable) Get(context.Context, store.Key) (store.Found, error) {
	return store.Found{}, errUnreadable
}

func (unreadable) Claim(context.Context, store.Proposal) (store.Found, error) {
	return store.Found{}, errUnreadable
}

// Trying again does not help, and the messages of its order key would wait.
func TestHandle_RedrivenRecordIsUnreadable_IsQuarantined(t *testing.T) {
	g := newGuard(t, unreadable{memstore.New(nil)}, nil)
	c := newConsumer(t, g, func(context.Context, *semel.Execution, *consume.Message) error { return nil }, consume.Options{Reopen: g})
	m := keyed("k")
	m.Headers = append(m.Headers, store.Header{Name: consume.RedriveHeader, Value: "ann: fixed"}, store.Header{Name: driver.LetterFence, Value: "1"})
	if d := c.Handle(t.Context(), m); d.Action != driver.Quarantine || d.Reason != driver.ReasonCorrupt {
		t.Errorf("%v, %q: %v", d.Action, d.Reason, d.Err)
	}
}
