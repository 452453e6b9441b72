package consumetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/store"
)

const (
	group string = "consumetest"
	lease        = 2 * time.Second
	// held is the lease of those who live: no pause of the machine outlasts it.
	held = 30 * time.Second
)

// world is one test: a broker, a store, and a journal of the handlers.
type world struct {
	testing.TB
	h      Harness
	broker Broker
	store  store.Store
	all    []*process // in the order of their start
	journal
}

func newWorld(t testing.TB, h Harness) *world {
	w := &world{TB: t, h: h, broker: h.Open(t), store: h.Store(t)}
	w.runs, w.effects = map[string]int{}, map[string]int{}
	return w
}

// journal records the effects of the handlers.
type journal struct {
	mu      sync.Mutex
	runs    map[string]int // handlers that ended well, by the message's key
	effects map[string]int // the same, by the derived key that a downstream would compare
	order   map[string][]string
	events  []consume.Event
	origins map[string]consume.Origin
}

// effect records the effect of a handler.
func (j *journal) effect(x *semel.Execution, m *consume.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs[m.Key]++
	j.effects[x.DownstreamKey("effect")]++
	if j.order == nil {
		j.order, j.origins = map[string][]string{}, map[string]consume.Origin{}
	}
	j.order[m.OrderKey] = append(j.order[m.OrderKey], m.Key)
}

// begun notes where a message came from.
func (j *journal) begun(m *consume.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.origins == nil {
		j.order, j.origins = map[string][]string{}, map[string]consume.Origin{}
	}
	j.origins[m.Key] = m.Origin
}

func (j *journal) ran(key string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.runs[key]
}

func (j *journal) total() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.runs {
		n += r
	}
	return n
}

// saw counts the events of a kind, and for EventDecided of a reason.
func (j *journal) saw(kind consume.Kind, reason driver.Reason) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.events {
		if j.events[i].Kind == kind && (reason == "" || j.events[i].Disposition.Reason == reason) {
			n++
		}
	}
	return n
}

func (j *journal) observe(_ context.Context, e consume.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

// msg is a message with a key.
func msg(key, orderKey string) consume.Message {
	return consume.Message{OrderKey: orderKey, Body: []byte("body of " + key), Headers: []store.Header{{Name: consume.KeyHeader, Value: key}}}
}

// many is n messages with keys of their own and no order.
func many(n int) (ms []consume.Message) {
	for i := range n {
		ms = append(ms, msg(fmt.Sprintf("m%04d", i), ""))
	}
	return ms
}

// until waits for something that must happen.
func (w *world) until(what string, ready func() bool) {
	w.Helper()
	end := time.Now().Add(w.h.Patience)
	for d := time.Millisecond; !ready(); d = min(2*d, 50*time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("after %v: not %s", w.h.Patience, what)
		}
		<-time.After(d)
	}
}

// settled waits until the broker has nothing left to deliver.
func (w *world) settled() {
	w.Helper()
	done := false
	defer func() {
		if !done {
			w.tell()
		}
	}()
	w.until("all messages acked", func() bool { return w.broker.Unsettled(w) == 0 })
	done = true
}

// tell logs what may explain why messages have no end: the state of the consumers, and
// the last events.
func (w *world) tell() {
	w.Helper()
	w.Logf("%d messages are not settled", w.broker.Unsettled(w))
	if b, ok := w.broker.(Stater); ok {
		w.Log(b.State(w))
	}
	for i, p := range w.all {
		state := "serves"
		select {
		case <-p.over:
			state = "was stopped or killed"
		default:
		}
		select {
		case <-p.ended:
			state += fmt.Sprint(", and has ended: ", p.err)
		default:
		}
		w.Logf("consumer %d %s", i, state)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events[max(0, len(w.events)-20):] {
		key := "no message"
		if e.Message != nil {
			key, _ = e.Message.Header(consume.KeyHeader)
		}
		w.Logf("%s: %v: %+v, %v", key, e.Kind, e.Disposition, e.Err)
	}
}

// once checks that each message has run once.
func (w *world) once(ms []consume.Message) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var wrong []string
	for i := range ms {
		if key, _ := ms[i].Header(consume.KeyHeader); w.runs[key] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s: %d times", key, w.runs[key]))
		}
	}
	if len(wrong) > 0 {
		w.Errorf("of %d messages, %d did not run once: %v", len(ms), len(wrong), wrong[:min(len(wrong), 10)])
	}
}

// copies checks how many copies a destination has, and returns them. If the ack comes later
// than a broker waits, the broker delivers a message again, and a later delivery is copied
// again: such a repeat does not count.
func (w *world) copies(to driver.Action, n int) []consume.Message {
	w.Helper()
	got, last := w.broker.Copies(w, to), map[string]int{} // by id: the last delivery that was copied
	slices.SortStableFunc(got, func(a, b consume.Message) int { return deliveriesOf(&a) - deliveriesOf(&b) })
	got = slices.DeleteFunc(got, func(m consume.Message) bool {
		id, _ := m.Header(driver.LetterID)
		before, copied := last[id]
		last[id] = deliveriesOf(&m)
		return copied && id != "" && last[id] > before
	})
	if len(got) != n {
		w.Fatalf("%d messages in %v, want %d", len(got), to, n)
	}
	return got
}

// deliveriesOf says in which delivery of its message a copy was made; 0: the broker does
// not count.
func deliveriesOf(copied *consume.Message) int {
	text, _ := copied.Header(driver.LetterDeliveries)
	n, _ := strconv.Atoi(text)
	return n
}

// reasons are the reasons of copies, in order of the alphabet.
func reasons(ms []consume.Message) (rs []string) {
	for i := range ms {
		r, _ := ms[i].Header(driver.LetterReason)
		rs = append(rs, r)
	}
	slices.Sort(rs)
	return rs
}
