package saga_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 3: only a *Failure turns a saga back.
func TestRule3_PlainErrorOrDeadProcess_GoesOnForward(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"hold", "charge", "book"} {
		for _, when := range []string{"before", "after", "dies before", "dies after"} {
			t.Run(when+" "+at, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
					p := newProcess(st)
					fail := once(at, errBoom)
					hook := func(name string) error {
						err := fail(name)
						if err != nil && strings.HasPrefix(when, "dies") {
							p.kill()
						}
						return err
					}
					if strings.HasSuffix(when, "before") {
						w.before = hook
					} else {
						w.after = hook
					}
					if _, err := newSaga(t, p, w.three()).Do(t.Context(), "ann", "1", book); err == nil {
						t.Fatal("the first process succeeded")
					}
					other := newSaga(t, st, w.three())
					work(t, 2*time.Minute, other)
					if r := record(t, st, "1"); r.State != store.Completed {
						t.Fatalf("the record is %v: %s", r.State, r.LastError)
					}
					if v, err := other.Do(t.Context(), "ann", "1", book); err != nil || v != "booked book" {
						t.Errorf("%q, %v", v, err)
					}
					if n := timersOf(t, st); n != 0 {
						t.Errorf("%d timers are left", n)
					}
					for name, keys := range w.keys {
						for _, key := range keys {
							if key != keys[0] {
								t.Errorf("%s came with the keys %q", name, keys)
							}
						}
						if most := 1; name != at && len(keys) != most {
							t.Errorf("%s happened %d times", name, len(keys))
						}
					}
				})
			})
		}
	}
}

// Rule 3: that a recorded step cannot be read says nothing, whatever the definition makes
// of it.
func TestRule3_RecordedStepCannotBeRead_GoesOnForward(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		w.before = once("charge", errBoom)
		leave, runs := context.CancelFunc(nil), 0
		d := w.three()
		d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
			if runs++; runs == 2 {
				leave()
				<-ctx.Done()
			}
			if _, err := w.step(ctx, r, "hold"); err != nil {
				return "", errRefused // a definition that takes every error for a refusal
			}
			return w.step(ctx, r, "charge")
		}
		s := newSaga(t, st, d)
		for range 2 {
			var ctx context.Context
			ctx, leave = context.WithCancel(t.Context())
			if _, err := s.Do(ctx, "ann", "1", book); err == nil || errors.Is(err, errRefused) {
				t.Errorf("error %v, want one that does not end the saga", err)
			}
			leave()
		}
		if _, err := s.Do(t.Context(), "ann", "1", book); err != nil {
			t.Error(err)
		}
		w.done(t, "hold", "charge")
	})
}

// Rule 3: a Parked step in doubt holds everything, also the compensations.
func TestRule3_ParkedStepInDoubt_NothingRunsAndNothingIsUndone(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"error", "dies"} {
		bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
			d := w.three()
			d.Deadline = time.Hour
			d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
				if _, err := w.step(ctx, r, "hold"); err != nil {
					return "", err
				}
				if _, err := w.step(ctx, r, "charge", saga.Parked()); err != nil {
					return "", errRefused // a definition that takes doubt for a failure
				}
				return "booked", nil
			}
			p := newProcess(st)
			w.after = func(name string) error {
				if name == "charge" {
					if when == "dies" {
						p.kill()
					}
					return errBoom
				}
				return nil
			}
			_, _ = newSaga(t, p, d).Do(t.Context(), "ann", "1", book)
			s := newSaga(t, st, d)
			work(t, 3*time.Hour, s)
			_, err := s.Do(t.Context(), "ann", "1", book)
			if !errors.Is(err, semel.ErrParked) || !strings.Contains(err.Error(), `step "charge"`) {
				t.Errorf("error %v, want ErrParked that names charge", err)
			}
			w.done(t, "hold", "charge")
		})
	}
}

// Rule 3: a Parked step that says NoEffect runs again.
func TestRule3_ParkedStepWithoutEffect_RunsAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.Run = func(ctx context.Context, r *saga.Run, in order) (string, error) {
			return w.step(ctx, r, "charge", saga.Parked())
		}
		tries := 0
		w.before = func(string) error {
			if tries++; tries < 4 {
				return semel.NoEffect(errBoom)
			}
			return nil
		}
		s := newSaga(t, st, d)
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, time.Minute, s)
		w.done(t, "charge")
		if r := record(t, st, "1"); r.State != store.Completed || tries != 4 {
			t.Errorf("after %d tries the record is %v: %s", tries, r.State, r.LastError)
		}
	})
}

// Rule 4: compensations go on although the caller has left.
func TestRule4_CallerLeaves_CompensationsGoOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		w.before = func(name string) error {
			if name == "book" {
				cancel()
				synctest.Wait() // all that ends with the caller has ended
				return errRefused
			}
			return nil
		}
		if _, err := newSaga(t, st, w.three()).Do(ctx, "ann", "1", book); !errors.Is(err, errRefused) {
			t.Errorf("error %v, want the failure", err)
		}
		w.done(t, "hold", "charge", "undo charge", "undo hold")
	})
}

// Rule 4: a compensation is tried again, and one that gives up leaves the saga stuck.
func TestRule4_CompensationGivesUp_SagaIsStuckNeverFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		tries int
	}{"a failure": {errRefused, 1}, "plain errors": {errBoom, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
				tries := 0
				w.before = func(name string) error {
					switch name {
					case "book":
						return errRefused
					case "undo charge":
						tries++
						return c.err
					}
					return nil
				}
				d := w.three()
				d.UndoAttempts = 3
				s := newSaga(t, st, d)
				if err := s.Start(t.Context(), "ann", "1", book); err != nil {
					t.Fatal(err)
				}
				work(t, time.Hour, s)
				_, err := s.Do(t.Context(), "ann", "1", book)
				if _, failed := errors.AsType[*semel.Failure](err); failed || !errors.Is(err, semel.ErrParked) || !strings.Contains(err.Error(), `compensation of step "charge"`) {
					t.Errorf("error %v, want ErrParked that names the compensation, and no failure", err)
				}
				if tries != c.tries {
					t.Errorf("it was tried %d times, want %d", tries, c.tries)
				}
				w.done(t, "hold", "charge")
			})
		})
	}
}

// Rule 4: processes that die in a compensation do not go on for ever.
func TestRule4_CompensationKillsProcesses_SagaIsStuck(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.UndoAttempts = 3
		var p *process
		deaths := 0
		w.before = func(name string) error {
			switch name {
			case "book":
				return errRefused
			case "undo charge":
				deaths++
				p.kill()
				return errBoom
			}
			return nil
		}
		var err error
		for range 10 {
			p = newProcess(st)
			_, err = newSaga(t, p, d).Do(t.Context(), "ann", "1", book)
			sleep(time.Minute)
		}
		if !errors.Is(err, semel.ErrParked) || deaths < 3 || deaths > 4 {
			t.Errorf("after %d deaths: error %v, want ErrParked after 3", deaths, err)
		}
		w.done(t, "hold", "charge")
	})
}
