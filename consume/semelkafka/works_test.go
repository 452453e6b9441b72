package semelkafka

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What has come to its end makes room for others, with nothing left in it; what
// waits does not.
func TestWorksAreUsedAgainWhenTheyAreOver(t *testing.T) {
	l := &scripted{ends: map[string]consume.Run{"0/0": {Err: errors.New("flaky"), Handlers: true, Attempt: 1}, "1/1": {Err: semel.Final(errors.New("no")), Handlers: true, Attempt: 1}}}
	b := looping(t, l, consume.Options{AckFailures: true}, 1, 3)
	b.turn(t)
	held := b.held["0"].works[0]
	if len(b.free) != 3 || slices.Contains(b.free, held) {
		t.Fatalf("%d are free, with what waits: %v", len(b.free), slices.Contains(b.free, held))
	}
	for i, w := range b.free {
		if *w != (work{}) {
			t.Errorf("free work %d has %+v left", i, w)
		}
	}
	for turn := range 3 { // more than there is room for, and fewer
		n := []int{5, 2, 4}[turn]
		b.s.come(1, b.s.parts[place{"t", 1}].polled, n)
		l.given = nil
		b.turn(t)
		if len(l.given) != n || slices.Contains(l.given, "0/0") {
			t.Errorf("turn %d: the ledger was given %q", turn, l.given)
		}
		if got := held.it.Origin; got.Partition != 0 || got.Offset != 0 || held.tries != 1 {
			t.Fatalf("what waits is %+v now, tried %d times", got, held.tries)
		}
	}
	if len(b.free) != 5 {
		t.Errorf("%d are free, want as many as there were at once", len(b.free))
	}
	l.ends = nil
	b.due()
	b.turn(t)
	if len(b.held) > 0 || len(b.free) != 6 {
		t.Errorf("at the end %d lanes wait, and %d are free", len(b.held), len(b.free))
	}
}

// Messages that are made together have nothing of each other, also when one's
// headers are appended to.
func TestMessagesThatAreMadeTogetherAreApart(t *testing.T) {
	s, ms := apart(t, nil), &messages{}
	const n = 2*together + 3
	var all []*consume.Message
	for i := range n {
		r := &kgo.Record{Topic: "t", Offset: int64(i)}
		for j := range []int{0, 1, 3, 2 * together}[i%4] {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: fmt.Sprint(j), Value: []byte(fmt.Sprint(i))})
		}
		all = append(all, s.message(ms, r, "id"))
	}
	for _, m := range all {
		_ = append(m.Headers, m.Headers...)
	}
	for i, m := range all {
		if m.Origin.Offset != int64(i) || len(m.Headers) != []int{0, 1, 3, 2 * together}[i%4] {
			t.Errorf("message %d is of offset %d and has %d headers", i, m.Origin.Offset, len(m.Headers))
		}
		for j, h := range m.Headers {
			if h.Name != fmt.Sprint(j) || h.Value != fmt.Sprint(i) {
				t.Errorf("header %d of message %d is %v", j, i, h)
			}
		}
	}
}
