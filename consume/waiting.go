package consume

import "github.com/semel-go/semel/consume/driver"

// waitingMessages counts the messages that wait for something else than a free handler: for
// an earlier message of their line, for the end of a pause, for their turn, or for the
// broker's answer to a settlement that takes long. They have a limit
// of their own, so that one key that does not move does not stop the other keys.
type waitingMessages struct {
	messages int
	bytes    int
}

// tellWaits tells the adapter.
func (t *task) tellWaits() {
	if w, ok := t.d.(driver.Waiter); ok {
		w.Waits(t.waits)
	}
}

// waitingBytes is the size of the bodies that may wait.
const waitingBytes = 64 << 20

func (w *waitingMessages) add(t *task) {
	if !t.waits {
		t.waits = true
		w.messages++
		w.bytes += len(t.m.Body)
		t.tellWaits()
	}
}

func (w *waitingMessages) remove(t *task) {
	if t.waits {
		t.waits = false
		w.messages--
		w.bytes -= len(t.m.Body)
		t.tellWaits()
	}
}

// fetchLimit is how many messages the next fetch may return; none if it is not positive. If
// the broker limits deliveries, a message that waits for its turn is not in s.waiting: its
// handler has not begun, and each stop would use up one more of its deliveries.
func (s *session) fetchLimit() int {
	if s.waiting.bytes >= waitingBytes {
		return 0
	}
	most := s.c.opt.InFlight
	if s.info.DeliveryLimit > 0 { // each message that is taken must be able to begin
		most = s.c.opt.Concurrency
	}
	return min(most-(s.taken-s.waiting.messages), s.c.opt.Waiting-s.waiting.messages)
}
