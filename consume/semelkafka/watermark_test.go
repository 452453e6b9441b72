package semelkafka

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// In whatever order the records end, the committed offset is below the lowest
// unfinished one, and reaches the end when all are done.
func TestWatermark_StaysBelowTheLowestUnfinishedRecord(t *testing.T) {
	for range 300 {
		n := 1 + rand.IntN(40)
		var w watermark
		w.next.offset = -1
		var offsets []int64
		for at := int64(rand.IntN(100)); len(offsets) < n; at += int64(1 + rand.IntN(3)) { // with gaps
			offsets = append(offsets, at)
			w.out(entry{offset: at, last: LastMessage{LeaderEpoch: int32(at)}})
		}
		left := slices.Clone(offsets)
		for _, i := range rand.Perm(n) {
			before := w.next
			moved := w.done(offsets[i])
			left = slices.DeleteFunc(left, func(o int64) bool { return o == offsets[i] })
			want := offsets[n-1] + 1
			if len(left) > 0 {
				want = -1
				for _, o := range offsets {
					if o < left[0] {
						want = o + 1
					}
				}
			}
			if w.next.offset != want && (want >= 0 || w.next.offset != -1) {
				t.Fatalf("of %v, %v are left, and %d is committed, want %d", offsets, left, w.next.offset, want)
			}
			if moved != (before != w.next) {
				t.Fatalf("moved is %v from %v to %v", moved, before, w.next)
			}
		}
		if len(w.entries) != 0 || w.next.epoch != int32(offsets[n-1]) {
			t.Fatalf("at the end it is %+v", w)
		}
	}
}

func TestWatermark_RecordReturnedAgain_CountsOnce(t *testing.T) {
	var w watermark
	for _, o := range []int64{5, 6, 7} {
		w.out(entry{offset: o})
	}
	w.done(6)
	w.out(entry{offset: 5}) // given back, and handed out again
	if len(w.entries) != 3 || w.done(99) || w.done(4) {
		t.Errorf("it is %+v", w)
	}
	if !w.done(5) || w.next.offset != 7 {
		t.Errorf("after 5 and 6 are done it is %+v", w)
	}
	if w.done(5) {
		t.Error("a late ack of what is done moved it")
	}
	if w.end() != 8 || !w.done(7) || w.end() != 8 {
		t.Errorf("the end is %d", w.end())
	}
}
