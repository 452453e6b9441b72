package saga_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// Rule 5: a saga that has turned back never goes on forward, whatever its code says now.
func TestRule5_ProcessDiesInFirstCompensation_StaysTurnedBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		var mu sync.Mutex
		runs := 0
		d := w.three()
		d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
			mu.Lock()
			runs++
			first := runs == 1
			mu.Unlock()
			for _, name := range []string{"hold", "charge"} {
				if _, err := w.step(ctx, r, name); err != nil {
					return "", err
				}
			}
			if first {
				return "", errRefused
			}
			if _, err := w.step(ctx, r, "book"); err != nil {
				return "", err
			}
			return "booked", nil
		}
		p := newProcess(st)
		die := once("undo charge", errBoom)
		w.before = func(name string) error {
			if err := die(name); err != nil {
				p.kill()
				return err
			}
			return nil
		}
		_, _ = newSaga(t, p, d).Do(t.Context(), "ann", "1", book)
		s := newSaga(t, st, d)
		work(t, 10*time.Minute, s)
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, errRefused) {
			t.Errorf("error %v, want the failure with which it turned back", err)
		}
		for _, name := range w.log {
			if name == "book" {
				t.Errorf("the effects are %q: it went on forward", w.log)
			}
		}
	})
}

// Rule 6: a stuck saga delays no other.
func TestRule6_StuckSagas_DelayNoOther(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		var runs atomic.Int32
		d := w.three()
		d.MaxAttempts = 1
		run := d.Run
		d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
			if in.Item == "stuck" {
				runs.Add(1)
				return "", errBoom
			}
			return run(ctx, r, in)
		}
		s := newSaga(t, st, d)
		for i := range 40 {
			if err := s.Start(t.Context(), "ann", fmt.Sprint("stuck", i), order{Item: "stuck"}); err != nil {
				t.Fatal(err)
			}
		}
		work(t, 10*time.Second, s)
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, 2*time.Second, s)
		if r := record(t, st, "1"); r.State != store.Completed {
			t.Errorf("the other saga is %v", r.State)
		}
		if r := record(t, st, "stuck7"); r.State != store.Unknown || !strings.HasPrefix(r.LastError, "MaxAttempts (1) is used up; the last attempt: "+errBoom.Error()) || runs.Load() != 40 {
			t.Errorf("the stuck saga is %v (%s); 40 with one attempt each ran %d times", r.State, r.LastError, runs.Load())
		}
	})
}

// The error of a stuck saga names the limit that is used up. It does not say that nothing was
// recorded, because the first attempt counts, too, after it has recorded steps.
func TestRule6_AttemptsUsedUp_ErrorNamesLimitAndStep(t *testing.T) {
	t.Parallel()
	for want, fails := range map[string][]string{
		`MaxAttempts (1) is used up; the last attempt: step "charge" did not end: ` + errBoom.Error():          {"charge"},
		`UndoAttempts (1) is used up; the last attempt: the compensation of step "charge": ` + errBoom.Error(): {"book", "undo charge"},
	} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			d := w.three()
			d.MaxAttempts, d.UndoAttempts = 1, 1
			w.before = func(name string) error {
				switch {
				case !slices.Contains(fails, name):
					return nil
				case name == "book":
					return errRefused
				}
				return errBoom
			}
			_, err := newSaga(t, st, d).Do(t.Context(), "ann", "1", book)
			if r := record(t, st, "1"); !errors.Is(err, semel.ErrParked) || r.LastError != want {
				t.Errorf("%v; the record has %q, want %q", err, r.LastError, want)
			}
		})
	}
}

// Rule 6: a deadline parks if the definition says so.
func TestRule6_StuckAtDeadline_Parks(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.Deadline, d.StuckAtDeadline = time.Minute, true
		d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
			if _, err := w.step(ctx, r, "hold"); err != nil {
				return "", err
			}
			_, err := saga.Step(ctx, r, "charge", func(ctx context.Context, _ saga.At) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}, nil)
			return "", err
		}
		s := newSaga(t, st, d)
		begin := time.Now()
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
			t.Errorf("error %v, want ErrParked", err)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("it was parked after %v, want the deadline", took)
		}
		w.done(t, "hold")
	})
}

// Rule 7: a started saga needs no caller, and outlives the retention.
func TestRule7_Started_RunsLongAfterItsProcessDied(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		p := newProcess(st)
		if err := newSaga(t, p, w.three()).Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		p.kill()
		sleep(1000 * time.Hour)
		if _, err := st.Sweep(t.Context(), "", 100); err != nil {
			t.Fatal(err)
		}
		s := newSaga(t, st, w.three())
		work(t, time.Minute, s)
		if r := record(t, st, "1"); r.State != store.Completed {
			t.Errorf("the saga is %v", r.State)
		}
		if v, err := s.Do(t.Context(), "ann", "1", book); err != nil || v != "booked book" {
			t.Errorf("%q, %v", v, err)
		}
		w.done(t, "hold", "charge", "book")
	})
}

// Rule 8: the keys of a step are the same in each attempt and known to its compensation,
// and no two steps or compensations share one.
func TestRule8_Keys_SameInEachAttemptAndUnlikeOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		after := map[string]func(string) error{}
		for _, name := range []string{"hold", "charge", "undo charge", "undo hold"} {
			after[name] = once(name, errBoom)
		}
		w.after = func(name string) error {
			if name == "book" {
				return errRefused
			}
			return after[name](name)
		}
		s := newSaga(t, st, w.three())
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, 10*time.Minute, s)
		seen := map[string]string{}
		for name, keys := range w.keys {
			if len(keys) != 2 && name != "book" || keys[0] != keys[len(keys)-1] {
				t.Errorf("%s came with the keys %q, want one key twice", name, keys)
			}
			own, _, _ := strings.Cut(keys[0], " for ")
			if other := seen[own]; other != "" {
				t.Errorf("%s and %s share a key", name, other)
			}
			seen[own] = name
		}
		for _, name := range []string{"hold", "charge"} {
			if _, of, _ := strings.Cut(w.keys["undo "+name][0], " for "); of != w.keys[name][0] {
				t.Errorf("the compensation of %s got the key %q of its step, want %q", name, of, w.keys[name][0])
			}
		}
	})
}

// Rule 7: sweeps with short retention and few attempts, while no worker is there, keep a
// saga whose process died in a step.
func TestRule7_ProcessDiesAndSweepsGoOn_SagaIsKept(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		p := newProcess(st)
		die := once("charge", errBoom)
		w.after = func(name string) error {
			if err := die(name); err != nil {
				p.kill()
				return err
			}
			return nil
		}
		_, _ = newSaga(t, p, w.three()).Do(t.Context(), "ann", "1", book)
		for range 5 {
			sleep(100 * time.Hour)
			if _, err := sweep.Once(t.Context(), st, &sweep.Options{Retention: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
		s := newSaga(t, st, w.three())
		work(t, time.Minute, s)
		if r := record(t, st, "1"); r.State != store.Completed {
			t.Errorf("the saga is %v", r.State)
		}
		if v, err := s.Do(t.Context(), "ann", "1", book); err != nil || v != "booked book" {
			t.Errorf("%q, %v", v, err)
		}
		w.done(t, "hold", "charge", "charge", "book")
	})
}
