package outboxtest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/store"
)

// Arrived is a message as its destination has it.
type Arrived struct {
	OrderKey string
	Headers  []store.Header
	Body     []byte
}

// ID is the value of outbox.KeyHeader.
func (a *Arrived) ID() string { return a.header(outbox.KeyHeader) }

func (a *Arrived) header(name string) string {
	for _, h := range a.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

// Destination is what RunSink needs.
type Destination struct {
	Sink  outbox.Sink
	Topic string
	// Arrived returns the first n messages of the topic in order, and waits for them.
	Arrived func(t testing.TB, n int) []Arrived
	// TooLarge is a size of a body that the destination refuses; 0: it takes each.
	TooLarge int
	// LosesOrder says that the destination itself keeps no order.
	LosesOrder bool
}

// RunSink tests a sink for a broker.
func RunSink(t *testing.T, d Destination) {
	t.Helper()
	var messages []outbox.Message
	for n := range 10 {
		for _, key := range []string{"ann", "bob", ""} {
			messages = append(messages, outbox.Message{
				Topic: d.Topic, OrderKey: key, ID: fmt.Sprintf("%s-%d", key, n), Headers: []store.Header{{Name: "color", Value: fmt.Sprint("blue", n)}}, Body: fmt.Append(nil, n),
			})
		}
	}
	want := len(messages)
	large := map[string]bool{}
	if d.TooLarge > 0 { // in the middle of ann's
		messages[12].Body = make([]byte, d.TooLarge) // must not become smaller by compression
		_, _ = rand.NewChaCha8([32]byte{}).Read(messages[12].Body)
		for _, m := range messages[12:] {
			if m.OrderKey == "ann" {
				large[m.ID] = true
			}
		}
		want -= len(large)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	d.Sink.Publish(ended, messages, func(i int, err error) {
		if err == nil {
			t.Errorf("message %s was sent, although the context had ended", messages[i].ID)
		}
	})
	var mu sync.Mutex
	answers := make([]error, len(messages))
	d.Sink.Publish(t.Context(), messages, func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		answers[i] = err
	})
	for i, err := range answers {
		m := &messages[i]
		switch {
		case i == 12 && d.TooLarge > 0:
			if !outbox.IsPoison(err) {
				t.Errorf("%s is too large: %v, want poison", m.ID, err)
			}
		case large[m.ID] != (err != nil):
			t.Errorf("%s: %v", m.ID, err)
		}
	}
	d.check(t, messages, want)
}

// check compares what has arrived.
func (d *Destination) check(t *testing.T, messages []outbox.Message, want int) {
	t.Helper()
	arrived := d.Arrived(t, want)
	if len(arrived) != want {
		t.Fatalf("%d messages have arrived, want %d", len(arrived), want)
	}
	next := map[string]int{}
	for i := range arrived {
		a := &arrived[i]
		n := slices.IndexFunc(messages, func(m outbox.Message) bool { return m.ID == a.ID() })
		if n < 0 {
			t.Fatalf("a message has arrived with the headers %v; none has the ID %q", a.Headers, a.ID())
		}
		m := &messages[n]
		if a.OrderKey != m.OrderKey && m.OrderKey != "" || !bytes.Equal(a.Body, m.Body) || a.header("color") != m.Headers[0].Value {
			t.Errorf("%s has arrived as %+v", m.ID, a)
		}
		if id := fmt.Sprintf("%s-%d", m.OrderKey, next[m.OrderKey]); m.OrderKey != "" && !d.LosesOrder && id != m.ID {
			t.Errorf("%s has arrived, want %s", m.ID, id)
		}
		next[m.OrderKey]++
	}
}
