package saga_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// An operator decides about a Parked step in doubt.
func TestIntervene_ParkedStepInDoubt_GoesOnAsDecided(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   saga.Intervention
		want []string
		end  store.State
	}{
		"not happened": {saga.Intervention{NotHappened: []string{"charge"}}, []string{"hold", "charge", "charge", "book"}, store.Completed},
		"done":         {saga.Intervention{Done: "charge", Result: []byte(`"result of charge"`)}, []string{"hold", "charge", "book"}, store.Completed},
		"back":         {saga.Intervention{NotHappened: []string{"charge"}, Back: true}, []string{"hold", "charge", "undo hold"}, store.Failed},
		"done, back":   {saga.Intervention{Done: "charge", Result: []byte(`"result of charge"`), Back: true}, []string{"hold", "charge", "undo in doubt book", "undo charge", "undo hold"}, store.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
				w.after = once("charge", errBoom)
				d := w.parked()
				s := newSaga(t, st, d)
				if err := s.Start(t.Context(), "ann", "1", book); err != nil {
					t.Fatal(err)
				}
				work(t, time.Minute, s)
				stuck := record(t, st, "1")
				if stuck.State != store.Unknown {
					t.Fatalf("the saga is %v", stuck.State)
				}
				c.do.Why = "ann: the bank says so"
				if err := saga.Intervene(t.Context(), st, stuck, c.do); err != nil {
					t.Fatal(err)
				}
				if owners := record(t, st, "1").FormerOwners; len(owners) == 0 || owners[len(owners)-1].Owner != stuck.Owner {
					t.Errorf("the owner before the operator is not among the former owners: %+v", owners)
				}
				if err := saga.Intervene(t.Context(), st, stuck, c.do); !errors.Is(err, store.ErrChanged) {
					t.Errorf("the second time: %v, want ErrChanged", err)
				}
				work(t, time.Minute, s)
				w.done(t, c.want...)
				if r := record(t, st, "1"); r.State != c.end {
					t.Errorf("the saga is %v: %s", r.State, r.LastError)
				}
				now := record(t, st, "1")
				steps, err := st.Steps(t.Context(), now.Lease())
				kept := false
				for _, step := range steps {
					kept = kept || step.Name == "saga:operator:1" && strings.Contains(string(step.Outcome.Body), c.do.Why)
				}
				if err != nil || !kept {
					t.Errorf("who and why is not recorded: %v", err)
				}
			})
		})
	}
}

// parked is three with a step "charge" that is Parked, and in doubt once.
func (w *world) parked() saga.Definition[order, string] {
	w.after = once("charge", errBoom)
	d := w.three()
	d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
		for _, step := range d.Steps {
			var options []saga.StepOption
			if step == "charge" {
				options = append(options, saga.Parked())
			}
			if _, err := w.step(ctx, r, step, options...); err != nil {
				return "", err
			}
		}
		return "booked", nil
	}
	return d
}

// A decision that does not say whether a step in doubt happened would leave the saga stuck at
// it, and use up its only turning back. A step that is skipped without a result would give an
// empty one to all that follows. Neither changes anything.
func TestIntervene_DecisionIncomplete_ChangesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		s := newSaga(t, st, w.parked())
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
			t.Fatalf("error %v, want ErrParked", err)
		}
		stuck := record(t, st, "1")
		for says, i := range map[string]saga.Intervention{
			`step "charge" is in doubt`:                {},
			`"charge" is in doubt; find out`:           {Back: true},
			`"charge" needs its result: the JSON`:      {Done: "charge"},
			`needs its result: the JSON that the`:      {Done: "charge", Result: []byte("payment 4711")},
			`step "hold" is recorded already`:          {Done: "hold", Result: []byte("1")},
			`the saga is stuck at "charge", not at "b`: {Done: "book", Result: []byte("1")},
			`neither a step nor a compensation`:        {Done: "a:b", Result: []byte("1")},
			`neither a Parked step in doubt nor a sk`:  {NotHappened: []string{"chrge"}},
			`cannot both be done and not have happene`: {Done: "charge", Result: []byte("1"), NotHappened: []string{"charge"}},
			`a compensation, which has no result`:      {Done: "charge:undo", Result: []byte("1"), NotHappened: []string{"charge"}, Back: true},
		} {
			i.Why = "ann"
			err := saga.Intervene(t.Context(), st, stuck, i)
			if !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), says) {
				t.Errorf("%+v: error %v, want one that says %s", i, err, says)
			}
		}
		if now := record(t, st, "1"); now.Fence != stuck.Fence || now.State != store.Unknown {
			t.Errorf("the record is %v with fence %d; want it unchanged", now.State, now.Fence)
		}
		if err := saga.Intervene(t.Context(), st, stuck, saga.Intervention{Why: "ann", Done: "charge", Result: []byte("null")}); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Do(t.Context(), "ann", "1", book); err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A run that loses its lease while the saga turns back does not say that a step is missing.
func TestTurnBack_LeaseLostInDefinition_SagaIsNotStuck(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		w.before = once("charge", errBoom)
		d := w.three()
		d.MaxAttempts = 1
		run, runs := d.Run, 0
		d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
			if runs++; runs == 2 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return run(ctx, r, in)
		}
		_, _ = newSaga(t, st, d).Do(t.Context(), "ann", "1", book)
		if err := saga.Intervene(t.Context(), st, record(t, st, "1"), saga.Intervention{Why: "ann", Back: true}); err != nil {
			t.Fatal(err)
		}
		p := newProcess(st)
		p.stale = true
		if _, err := newSaga(t, p, d).Do(t.Context(), "ann", "1", book); err == nil || errors.Is(err, semel.ErrParked) {
			t.Errorf("error %v, want one that leaves the saga as it is", err)
		}
		if _, err := newSaga(t, st, d).Do(t.Context(), "ann", "1", book); !errors.Is(err, &semel.Failure{Code: saga.CodeOperator}) {
			t.Errorf("error %v, want the operator's failure", err)
		}
		w.done(t, "hold", "undo in doubt charge", "undo hold")
	})
}

// A clock that is set back does not hide a step after a sleep from the compensations.
func TestSleep_ClockSetBackAndSagaTurnsBack_LaterStepIsUndone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var offset atomic.Int64
		st := memstore.New(&memstore.Options{Now: func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }})
		w := &world{after: once("book", errBoom)}
		d := w.waiting(func(ctx context.Context, r *saga.Run) error { return saga.Sleep(ctx, r, "wait", time.Hour) })
		d.MaxAttempts = 1
		s := newSaga(t, st, d)
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
			t.Fatalf("error %v, want ErrParked", err)
		}
		offset.Store(-int64(2 * time.Hour))
		if err := saga.Intervene(t.Context(), st, record(t, st, "1"), saga.Intervention{Why: "ann", Back: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, &semel.Failure{Code: saga.CodeOperator}) {
			t.Errorf("error %v, want the operator's failure", err)
		}
		w.done(t, "hold", "book", "undo in doubt book", "undo hold")
	})
}

// A decision that is wrong leaves the saga as it was.
func TestIntervene_WrongDecision_SagaStaysStuck(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.MaxAttempts = 1
		w.before = once("charge", errBoom)
		s := newSaga(t, st, d)
		_, _ = s.Do(t.Context(), "ann", "1", book)
		fence := record(t, st, "1").Fence
		for _, i := range []saga.Intervention{{}, {Why: "w", NotHappened: []string{"hold"}}, {Why: "w", Done: "hold"}, {Why: "w", Done: "saga:input"}} {
			if err := saga.Intervene(t.Context(), st, record(t, st, "1"), i); !errors.Is(err, semel.ErrInvalid) {
				t.Errorf("%+v: error %v, want ErrInvalid", i, err)
			}
		}
		if r := record(t, st, "1"); r.State != store.Unknown || r.Fence != fence {
			t.Errorf("the saga is %v with fence %d; want it as it was, with fence %d", r.State, r.Fence, fence)
		}
		if err := saga.Intervene(t.Context(), st, record(t, st, "1"), saga.Intervention{Why: "ann: try again"}); err != nil {
			t.Fatal(err)
		}
		work(t, time.Minute, s)
		w.done(t, "hold", "charge", "book")
	})
}

// A saga that has turned back cannot turn back again: its compensation is tried again, or
// was done by hand.
func TestIntervene_BackTwice_IsRefusedWithNextStep(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.UndoAttempts = 1
		w.before = func(step string) error {
			switch step {
			case "book":
				return semel.Final(errBoom)
			case "undo charge":
				return errBoom
			}
			return nil
		}
		s := newSaga(t, st, d)
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
			t.Fatalf("error %v, want ErrParked", err)
		}
		stuck := record(t, st, "1")
		err := saga.Intervene(t.Context(), st, stuck, saga.Intervention{Why: "ann", Back: true})
		if !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), `skip "charge:undo"`) {
			t.Errorf("error %v, want one that says to skip charge:undo", err)
		}
		if now := record(t, st, "1"); now.Fence != stuck.Fence || now.State != store.Unknown {
			t.Errorf("the record is %v with fence %d; want it unchanged", now.State, now.Fence)
		}
		for _, other := range []string{"chrge:undo", "hold:undo", "ship"} {
			err := saga.Intervene(t.Context(), st, stuck, saga.Intervention{Why: "ann", Done: other})
			if !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), `stuck at "charge:undo"`) {
				t.Errorf("skip %s: error %v, want one that says where the saga is stuck", other, err)
			}
		}
		if err := saga.Intervene(t.Context(), st, stuck, saga.Intervention{Why: "ann: by hand", Done: "charge:undo"}); err != nil {
			t.Fatal(err)
		}
		_, _ = s.Do(t.Context(), "ann", "1", book)
		if end := record(t, st, "1"); end.State != store.Failed {
			t.Errorf("the saga is %v: %s", end.State, end.LastError)
		}
		w.done(t, "hold", "charge", "undo hold")
	})
}

// A step that the operator misspells would be recorded for ever, and no run would reach it.
func TestIntervene_SkipOfAnotherStep_ChangesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.MaxAttempts = 1
		w.before = once("charge", errBoom)
		s := newSaga(t, st, d)
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
			t.Fatalf("error %v, want ErrParked", err)
		}
		stuck := record(t, st, "1")
		for other, says := range map[string]string{"charg": `stuck at "charge"`, "book": `stuck at "charge"`, "charge:undo": "has not turned back"} {
			err := saga.Intervene(t.Context(), st, stuck, saga.Intervention{Why: "ann", Done: other})
			if !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), says) {
				t.Errorf("skip %s: error %v, want one that says %s", other, err, says)
			}
		}
		if now := record(t, st, "1"); now.Fence != stuck.Fence || now.State != store.Unknown {
			t.Errorf("the record is %v with fence %d; want it unchanged", now.State, now.Fence)
		}
		if err := saga.Intervene(t.Context(), st, stuck, saga.Intervention{Why: "ann", Done: "charge", Result: []byte(`"result of charge"`)}); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Do(t.Context(), "ann", "1", book); err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}
