package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/store"
)

var errPartDown = errors.New("down")

// sweptPart is a part of a store that notes the cursors of its steps. Its pass has two steps.
func sweptPart(name string, steps *[]string, err error) store.Part {
	return store.Part{Name: name, Sweep: func(_ context.Context, from store.Cursor, _ int) (store.SweepResult, error) {
		*steps = append(*steps, name+string(from))
		if err != nil || from != "" {
			return store.SweepResult{}, err
		}
		return store.SweepResult{Next: "+"}, nil
	}}
}

// passOver sweeps from a cursor to the end of the pass, or to its error.
func passOver(t *testing.T, from store.Cursor, parts ...store.Part) error {
	t.Helper()
	for range 100 {
		res, err := store.SweepParts(t.Context(), from, 10, parts)
		if from = res.Next; err != nil || from == "" {
			return err
		}
	}
	t.Fatal("the pass does not end")
	return nil
}

func TestSweepParts_PartFails_OthersFirstThenOnceMore(t *testing.T) {
	var steps []string
	err := passOver(t, "", sweptPart("a", &steps, errPartDown), sweptPart("b", &steps, nil), sweptPart("c", &steps, nil))
	if want := "a b b+ c c+ a"; !errors.Is(err, errPartDown) || strings.Join(steps, " ") != want {
		t.Errorf("steps %q, error %v; want %q and the error of a", strings.Join(steps, " "), err, want)
	}
}

// What a step has deleted is not lost because the next part fails.
func TestSweepParts_LaterPartFails_GetsAStepOfItsOwn(t *testing.T) {
	var steps []string
	a := store.Part{Name: "a", Sweep: func(context.Context, store.Cursor, int) (store.SweepResult, error) {
		return store.SweepResult{Deleted: 3}, nil
	}}
	parts := []store.Part{a, sweptPart("b", &steps, errPartDown)}
	res, err := store.SweepParts(t.Context(), "", 10, parts)
	if err != nil || res.Deleted != 3 || res.Next == "" {
		t.Fatalf("%+v, error %v; want 3 deleted records and a cursor", res, err)
	}
	if err := passOver(t, res.Next, parts...); !errors.Is(err, errPartDown) || strings.Join(steps, " ") != "b b b" {
		t.Errorf("steps %q, error %v; want three of b and its error", steps, err)
	}
}

func TestSweepParts_PartLeavesOrJoins_PassGoesOn(t *testing.T) {
	for from, want := range map[store.Cursor]string{
		"":           "b b+ d d+",
		"1||a|7":     "b b+ d d+", // the cursor of a part that has left is none of another's
		"1||b|+":     "b+ d d+",
		"1||c|7":     "d d+",
		"1||d|+":     "d+",
		"1||e|7":     "",
		"1|b|e|7":    "b b+",
		"2|b|a|7":    "b b+",
		"2|a,c|b|+":  "b+",
		"1|a,b,c|e|": "b b+",
	} {
		var steps []string
		if err := passOver(t, from, sweptPart("b", &steps, nil), sweptPart("d", &steps, nil)); err != nil || strings.Join(steps, " ") != want {
			t.Errorf("from %q: steps %q, error %v; want %q", from, strings.Join(steps, " "), err, want)
		}
	}
	if err := passOver(t, ""); err != nil {
		t.Errorf("without parts: %v", err)
	}
}

// Two of four parts hang. Each step of the others has the whole time of a step.
func TestSweepParts_PartsHang_OthersHaveAllTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := func(name string) store.Part {
			return store.Part{Name: name, Sweep: func(ctx context.Context, _ store.Cursor, _ int) (store.SweepResult, error) {
				<-ctx.Done()
				return store.SweepResult{}, ctx.Err()
			}}
		}
		swept := 0
		slow := func(name string) store.Part {
			return store.Part{Name: name, Sweep: func(ctx context.Context, _ store.Cursor, _ int) (store.SweepResult, error) {
				select {
				case <-time.After(12 * time.Second):
					swept++
					return store.SweepResult{}, nil
				case <-ctx.Done():
					return store.SweepResult{}, ctx.Err()
				}
			}}
		}
		var failed error
		for from, step := store.Cursor(""), 0; (step == 0 || from != "") && failed == nil; step++ {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			var res store.SweepResult
			res, failed = store.SweepParts(ctx, from, 10, []store.Part{hung("a"), hung("b"), slow("c"), slow("d")})
			from = res.Next
			cancel()
		}
		if swept != 2 || !errors.Is(failed, context.DeadlineExceeded) {
			t.Errorf("%d parts are swept, error %v; want 2 and the error of a", swept, failed)
		}
	})
}

func TestPartContext_Deadline_IsHalfway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		part, end := store.PartContext(ctx)
		if deadline, ok := part.Deadline(); !ok || time.Until(deadline) != 5*time.Second {
			t.Errorf("the part's time is %v, want 5s", time.Until(deadline))
		}
		end()
		if part.Err() == nil || ctx.Err() != nil {
			t.Errorf("after its end the part's context has error %v, and the caller's %v", part.Err(), ctx.Err())
		}
	})
	part, end := store.PartContext(t.Context())
	defer end()
	if _, ok := part.Deadline(); ok {
		t.Error("a part has a deadline, and its caller has none")
	}
}
