package txevents

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestBuffer_End_ReportsTheLastThatEndsTheCall(t *testing.T) {
	ctx := With(t.Context(), &Buffer{})
	b := From(ctx)
	var got []string
	add := func(name string, endsCall bool) {
		b.Add(endsCall, func(err error) { got = append(got, fmt.Sprint(name, " ", err)) })
	}
	add("discarded", true)
	b.Discard()
	add("taken over", false)
	add("executed", true)
	add("refused", true)
	if got != nil {
		t.Fatalf("reported %q before the end", got)
	}
	if ended := b.End(errors.New("down")); !ended {
		t.Error("no end")
	}
	if ended := b.End(nil); ended { // reports nothing twice
		t.Error("a second end")
	}
	if want := []string{"taken over down", "refused down"}; !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
}

func TestWithout_ContextOfHandler_KeepsNothing(t *testing.T) {
	if ctx := Without(With(t.Context(), &Buffer{})); From(ctx) != nil {
		t.Error("the events of a handler's calls are kept")
	}
	if ctx := t.Context(); Without(ctx) != ctx {
		t.Error("a context that keeps nothing was wrapped")
	}
}
