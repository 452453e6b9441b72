package consume

import (
	"slices"
	"testing"

	"github.com/semel-go/semel/consume/driver"
)

// still is a delivery that is never revoked.
type still struct{ driver.Delivery }

func (still) Revoked() <-chan struct{} { return nil }

// Messages whose shard gives no answer are tried by a quarter of the handlers, in their
// order; the rest waits in session.waiting, until the end of Serve.
func TestSuspects_ShardDown_TakeAQuarterOfHandlers(t *testing.T) {
	s := &session{c: &Consumer{opt: Options{Concurrency: 8}}}
	var ts []*task
	for range 5 {
		suspect := &task{m: &Message{}, work: work{d: still{}, alone: true}}
		ts = append(ts, suspect)
		s.waiting.add(suspect)
		s.wake(suspect)
	}
	if !slices.Equal(s.ready, ts[:2]) || s.waiting.messages != 3 {
		t.Fatalf("%d suspects may run, %d wait", len(s.ready), s.waiting.messages)
	}
	healthy := &task{m: &Message{}, work: work{d: still{}}}
	s.wake(healthy)
	s.freeSuspect(ts[0])
	s.freeSuspect(ts[0]) // a second end changes nothing
	if want := []*task{ts[0], ts[1], healthy, ts[2]}; !slices.Equal(s.ready, want) || s.waiting.messages != 2 {
		t.Errorf("after the end of one %d messages are ready, %d wait", len(s.ready), s.waiting.messages)
	}
	s.draining = true
	if s.wakeSuspects(); len(s.ready) != 6 || s.waiting.messages != 0 {
		t.Errorf("at the end of Serve %d messages are ready, %d wait", len(s.ready), s.waiting.messages)
	}
}
