package kafkapg

import (
	"errors"
	"slices"
	"testing"

	"github.com/semel-go/semel/consume"
)

// What a batch knew of its calls is not what the next one begins with, nor one
// that is made meanwhile.
func TestABatchBeginsWithNothingOfAnother(t *testing.T) {
	l := &keyed{call: consume.Keyed("billing", consume.FromHeader(consume.KeyHeader))}
	r := l.newRun(named("a", "b", "c"))
	for i := range r.calls {
		r.said[i], r.ran[i] = errors.New("failed"), 7
	}
	beside := l.newRun(named("d"))
	r.giveBack()
	for range 2 {
		next := l.newRun(named("-none", "e", "f", "g"))
		if !slices.Equal(next.of, []int{1, 2, 3}) || len(next.said) != 3 || len(next.ran) != 3 {
			t.Fatalf("calls are of messages %v, %d said and %d ran", next.of, len(next.said), len(next.ran))
		}
		for i, m := range next.ms {
			if key := []string{"e", "f", "g"}[i]; m.Key != key || next.calls[i].Key != key || next.said[i] != nil || next.ran[i] != 0 {
				t.Errorf("call %d is %q, of message %q, said %v, attempt %d", i, next.calls[i].Key, m.Key, next.said[i], next.ran[i])
			}
			next.said[i], next.ran[i] = errors.New("failed"), 7
		}
		next.giveBack()
	}
	if beside.ms[0].Key != "d" || beside.calls[0].Key != "d" {
		t.Errorf("the batch beside is of %q and %q", beside.ms[0].Key, beside.calls[0].Key)
	}
}
