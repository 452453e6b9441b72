package semel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// once runs a step that counts its runs and returns err.
func once(ctx context.Context, g *semel.Guard, x *semel.Execution, name string, runs *int, err error) error {
	return semel.Once(ctx, g, x.Step(name), func(context.Context, *semel.Execution) error {
		*runs++
		return err
	})
}

// stepNames are the names of the steps that a record has.
func stepNames(t testing.TB, st store.Store, r store.Record) string {
	t.Helper()
	j, ok := store.As[store.Journal](st)
	if !ok {
		t.Fatalf("%T is no store.Journal", st)
	}
	steps, err := j.Steps(t.Context(), r.Lease())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range steps {
		names = append(names, steps[i].Name)
	}
	return strings.Join(names, " ")
}

// A step lives as long as its call, however long that is: here a parked call is
// resolved after its Retention.
func TestStep_CallParkedLongerThanRetention_DoesNotRunAgain(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{OnDoubt: semel.Park, Retention: time.Hour})
	charges := 0
	flow := func(result error) func(context.Context, *semel.Execution) error {
		return func(ctx context.Context, x *semel.Execution) error {
			if err := once(ctx, g, x, "charge", &charges, nil); err != nil {
				return err
			}
			return result
		}
	}
	wantErr(t, semel.Once(t.Context(), g, ann("k"), flow(errBoom)), semel.ErrParked)
	advance(2 * time.Hour)
	sweepAll(t, st)
	parked := wantState(t, g, "k", store.Unknown)
	if names := stepNames(t, st, parked); names != "charge" {
		t.Errorf("the parked record has the steps %q, want charge", names)
	}
	if err := g.Resolve(t.Context(), parked, semel.DidNotHappen()); err != nil {
		t.Fatal(err)
	}
	if err := semel.Once(t.Context(), g, ann("k"), flow(nil)); err != nil || charges != 1 {
		t.Errorf("charged %d times, error %v; want once", charges, err)
	}
	if names := stepNames(t, st, wantState(t, g, "k", store.Completed)); names != "charge" {
		t.Errorf("the completed record has the steps %q, want charge", names)
	}
	advance(2 * time.Hour) // a new life of the key
	if err := semel.Once(t.Context(), g, ann("k"), flow(nil)); err != nil || charges != 2 {
		t.Errorf("charged %d times in two lives, error %v; want twice", charges, err)
	}
}

func sweepAll(t testing.TB, st store.Store) {
	t.Helper()
	for from := store.Cursor(""); ; {
		res, err := st.Sweep(t.Context(), from, 100)
		if err != nil {
			t.Fatal(err)
		}
		if from = res.Next; from == "" {
			return
		}
	}
}

func TestStep_CallRetriedLongerThanRetention_DoesNotRunAgain(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{Retention: time.Hour})
	charges := 0
	for range 5 {
		err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
			return errors.Join(once(ctx, g, x, "charge", &charges, nil), errBoom)
		})
		wantErr(t, err, errBoom)
		advance(50 * time.Minute)
		sweepAll(t, st)
	}
	if charges != 1 {
		t.Errorf("charged %d times, want once", charges)
	}
}

// A goroutine that the handler has left behind finishes a step after the call.
func TestStep_EndsAfterItsCall_IsNotInNextLife(t *testing.T) {
	st, advance := newClockedStore()
	g := guard(t, st, &semel.Options{Retention: time.Hour})
	begun, ended, late := make(chan struct{}), make(chan struct{}), make(chan error)
	runs := 0
	err := semel.Once(t.Context(), g, ann("k"), func(_ context.Context, x *semel.Execution) error {
		ctx := t.Context()
		go func() {
			late <- semel.Once(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) error {
				runs++
				close(begun)
				<-ended
				return nil
			})
		}()
		<-begun
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	close(ended)
	wantErr(t, <-late, semel.ErrLeaseLost)
	advance(2 * time.Hour)
	err = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		return once(ctx, g, x, "charge", &runs, nil)
	})
	if err != nil || runs != 2 {
		t.Errorf("charged %d times in two lives, error %v; want twice", runs, err)
	}
}

// A step of a call that has ended must not begin, because it could not be recorded.
func TestStep_BeginsAfterItsCall_IsRefused(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	var leaked *semel.Execution
	if err := semel.Once(t.Context(), g, ann("k"), func(_ context.Context, x *semel.Execution) error { leaked = x; return nil }); err != nil {
		t.Fatal(err)
	}
	_, err := g.Run(t.Context(), leaked.Step("late"), never(t))
	wantErr(t, err, semel.ErrLeaseLost)
}

func TestStep_OwnerLostItsLease_IsFencedOff(t *testing.T) {
	st, advance := newClockedStore()
	frozen := guard(t, st, &semel.Options{Lease: time.Hour})
	next := guard(t, st, &semel.Options{Lease: time.Hour})
	var order []string
	_, err := frozen.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		err := semel.Once(ctx, frozen, x.Step("charge"), func(context.Context, *semel.Execution) error {
			advance(2 * time.Hour) // it freezes, and another process takes over
			return semel.Once(t.Context(), next, ann("k"), func(ctx context.Context, x *semel.Execution) error {
				return semel.Once(ctx, next, x.Step("charge"), func(context.Context, *semel.Execution) error {
					order = append(order, "second")
					return nil
				})
			})
		})
		wantErr(t, err, semel.ErrLeaseLost)
		_, err = frozen.Run(ctx, x.Step("mail"), never(t)) // it knows now
		wantErr(t, err, semel.ErrLeaseLost)
		return store.Outcome{}, err
	})
	wantErr(t, err, semel.ErrLeaseLost)
	if names := stepNames(t, st, wantState(t, next, "k", store.Completed)); names != "charge" || len(order) != 1 {
		t.Errorf("the record has the steps %q; want charge of the second owner", names)
	}
}

// The process of a step that has had its effect dies before the step is recorded.
func TestStep_ProcessDiesBeforeRecording_PolicyDecides(t *testing.T) {
	for policy, want := range map[semel.Policy]int{semel.Retry: 2, semel.Park: 1} {
		synctest.Test(t, func(t *testing.T) {
			st := memstore.New(nil)
			charges := 0
			dying := guard(t, &journalless{st, func() error { return errBoom }}, &semel.Options{OnDoubt: policy, SettleTimeout: time.Second, Lease: time.Minute})
			_, err := dying.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
				err := once(ctx, dying, x, "charge", &charges, nil)
				wantErr(t, err, semel.ErrOutcomeNotStored)
				return store.Outcome{}, err
			})
			if err == nil {
				t.Error("the call succeeded")
			}
			g := guard(t, st, &semel.Options{OnDoubt: policy})
			err = semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
				return once(ctx, g, x, "charge", &charges, nil)
			})
			if parked := errors.Is(err, semel.ErrParked); parked != (policy == semel.Park) || charges != want {
				t.Errorf("under %v: charged %d times, error %v", policy, charges, err)
			}
		})
	}
}

// journalless is a store that does not answer when a step is recorded.
type journalless struct {
	*memstore.Store
	answer func() error
}

func (j *journalless) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	if err := j.answer(); err != nil {
		return err
	}
	return j.Store.RecordStep(ctx, l, s)
}

func TestStep_StoreAnswersLate_IsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(nil)
		sent, charges := 0, 0
		lossy := &journalless{Store: st}
		lossy.answer = func() error {
			if sent++; sent < 4 {
				return errBoom
			}
			return nil
		}
		g := guard(t, lossy, nil)
		err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
			return once(ctx, g, x, "charge", &charges, nil)
		})
		if err != nil || sent != 4 || charges != 1 {
			t.Errorf("sent %d times, charged %d times, error %v", sent, charges, err)
		}
	})
}

// Steps of a call may run at the same time.
func TestStep_Concurrent_AreAllRecorded(t *testing.T) {
	st := memstore.New(nil)
	g := guard(t, st, nil)
	err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		errs := make(chan error)
		for i := range 50 {
			go func() {
				_, err := g.Run(ctx, x.Step(fmt.Sprint(i)), answer("done"))
				errs <- err
			}()
		}
		var all error
		for range 50 {
			all = errors.Join(all, <-errs)
		}
		return all
	})
	if n := len(strings.Fields(stepNames(t, st, record(t, g, "k")))); err != nil || n != 50 {
		t.Errorf("%d steps are recorded, error %v; want 50", n, err)
	}
}
