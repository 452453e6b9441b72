package kafkapg

import (
	"errors"
	"slices"
	"testing"

	"github.com/semel-go/semel/consume"
)

// A batch gets buffers of an earlier batch, but none of their contents, and never
// the buffers of a batch that has not ended.
func TestNewBatch_ReusedBuffers_AreEmpty(t *testing.T) {
	l := &keyedLedger{call: consume.Keyed("billing", consume.FromHeader(consume.KeyHeader))}
	ended := l.newBatch(named("a", "b", "c"))
	for i := range ended.calls {
		ended.handlerErrs[i], ended.attempts[i] = errors.New("failed"), 7
	}
	running := l.newBatch(named("d"))
	ended.returnBuffers()
	for range 2 {
		next := l.newBatch(named("-none", "e", "f", "g"))
		if !slices.Equal(next.indexes, []int{1, 2, 3}) || len(next.handlerErrs) != 3 || len(next.attempts) != 3 {
			t.Fatalf("the calls are of messages %v, with %d errors and %d attempts", next.indexes, len(next.handlerErrs), len(next.attempts))
		}
		for i, m := range next.messages {
			if key := []string{"e", "f", "g"}[i]; m.Key != key || next.calls[i].Key != key || next.handlerErrs[i] != nil || next.attempts[i] != 0 {
				t.Errorf("call %d is %q, of message %q, error %v, attempt %d", i, next.calls[i].Key, m.Key, next.handlerErrs[i], next.attempts[i])
			}
			next.handlerErrs[i], next.attempts[i] = errors.New("failed"), 7
		}
		next.returnBuffers()
	}
	if running.messages[0].Key != "d" || running.calls[0].Key != "d" {
		t.Errorf("the running batch has the keys %q and %q", running.messages[0].Key, running.calls[0].Key)
	}
}
