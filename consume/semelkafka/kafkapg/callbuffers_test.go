package kafkapg

import (
	"errors"
	"slices"
	"testing"

	"github.com/semel-go/semel/consume"
)

// What a batch knew of its calls is not what the next one begins with, nor one
// that is made meanwhile.
func TestNewBatch_ReusedBuffers_AreEmpty(t *testing.T) {
	l := &keyedLedger{call: consume.Keyed("billing", consume.FromHeader(consume.KeyHeader))}
	r := l.newBatch(named("a", "b", "c"))
	for i := range r.calls {
		r.handlerErrs[i], r.attempts[i] = errors.New("failed"), 7
	}
	beside := l.newBatch(named("d"))
	r.returnBuffers()
	for range 2 {
		next := l.newBatch(named("-none", "e", "f", "g"))
		if !slices.Equal(next.indexes, []int{1, 2, 3}) || len(next.handlerErrs) != 3 || len(next.attempts) != 3 {
			t.Fatalf("calls are of messages %v, %d said and %d ran", next.indexes, len(next.handlerErrs), len(next.attempts))
		}
		for i, m := range next.messages {
			if key := []string{"e", "f", "g"}[i]; m.Key != key || next.calls[i].Key != key || next.handlerErrs[i] != nil || next.attempts[i] != 0 {
				t.Errorf("call %d is %q, of message %q, said %v, attempt %d", i, next.calls[i].Key, m.Key, next.handlerErrs[i], next.attempts[i])
			}
			next.handlerErrs[i], next.attempts[i] = errors.New("failed"), 7
		}
		next.returnBuffers()
	}
	if beside.messages[0].Key != "d" || beside.calls[0].Key != "d" {
		t.Errorf("the batch beside is of %q and %q", beside.messages[0].Key, beside.calls[0].Key)
	}
}
