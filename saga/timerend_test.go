package saga_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// A worker that stops lets the step that runs end. If the saga ends with it, no timer is left.
func TestWork_StopsDuringLastStep_LeavesNoTimer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			return saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) {
				<-time.After(2 * time.Minute)
				return "", nil
			}, nil)
		}
		s := newSaga(t, st, d)
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, 100*time.Second, s) // the lease is shorter, so the worker finds the timer meanwhile
		r := record(t, st, "1")
		due, _, err := st.DueTimers(t.Context(), r.Key.Operation, 24*time.Hour, 10)
		if r.State != store.Completed || err != nil || len(due) != 0 {
			t.Errorf("the record is %v: %s; the timers are %v, %v; want none", r.State, r.LastError, due, err)
		}
	})
}

// The worker that runs the saga has found its timer during a long step, and put it off until the
// lease ends. A short sleep after that step is not longer because of that.
func TestWork_SleepAfterLongStep_GoesOnInTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		var slept time.Duration
		d := w.three()
		d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			charged, err := saga.Step(ctx, r, "charge", func(context.Context, saga.At) (time.Time, error) {
				<-time.After(2 * time.Minute)
				return time.Now(), nil
			}, nil)
			if err == nil {
				err = saga.Sleep(ctx, r, "hold", 2*time.Second)
			}
			slept = time.Since(charged)
			return "", err
		}
		s := newSaga(t, st, d)
		if err := s.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, 10*time.Minute, s)
		if r := record(t, st, "1"); r.State != store.Completed || slept > 4*time.Second {
			t.Errorf("the record is %v: %s; the saga slept %v, want 2 s", r.State, r.LastError, slept)
		}
	})
}

// stopping is a store whose worker is told to stop when it has found a timer.
type stopping struct {
	*memstore.Store
	stop context.CancelFunc
}

func (s *stopping) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	defer s.stop()
	return s.Store.SetTimer(ctx, k, seen, next, wait)
}

// The process of a saga dies between its end and the drop of its timer. The worker that finds the
// timer stops, and no other worker may come.
func TestWork_StopsBeforeItsLook_DropsTimerOfEndedSaga(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		if _, err := newSaga(t, st, w.three()).Do(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		k := record(t, st, "1").Key
		if _, err := st.SetTimer(t.Context(), k, store.Owner{}, store.Owner{1}, 0); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		if err := newSaga(t, &stopping{st, stop}, w.three()).Work(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if due, _, err := st.DueTimers(t.Context(), k.Operation, 24*time.Hour, 10); err != nil || len(due) != 0 {
			t.Errorf("the timers are %v, %v; want none", due, err)
		}
	})
}

// lateSweep is the store of a sweep that has found a lapsed saga, and makes its timer due only
// after a worker has taken the saga over.
type lateSweep struct{ *memstore.Store }

func (l lateSweep) SetTimer(ctx context.Context, k store.Key, seen, next store.Owner, wait time.Duration) (bool, error) {
	sleep(1500 * time.Millisecond)
	return l.Store.SetTimer(ctx, k, seen, next, wait)
}

// A sweep gives the timer of a saga that a worker has just taken over another version, and the
// worker puts it off until the lease ends. The saga's next attempt is not later because of that.
func TestWork_SweepChangesTimerOfShortRun_NextAttemptIsInTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		dying := newProcess(st)
		var began []time.Time
		w.before = func(name string) error {
			if name != "charge" {
				return nil
			}
			switch began = append(began, time.Now()); len(began) {
			case 1:
				dying.kill()
				return errBoom
			case 2:
				sleep(3 * time.Second)
				return errBoom
			}
			return nil
		}
		d := newSaga(t, dying, w.three())
		if err := d.Start(t.Context(), "ann", "1", book); err != nil {
			t.Fatal(err)
		}
		work(t, 100*time.Millisecond, d)
		sleep(time.Minute)
		var swept sync.WaitGroup
		swept.Go(func() {
			if _, err := sweep.Once(t.Context(), lateSweep{st}, nil); err != nil {
				t.Error(err)
			}
		})
		sleep(100 * time.Millisecond)
		work(t, 2*time.Minute, newSaga(t, st, w.three()))
		swept.Wait()
		if r := record(t, st, "1"); r.State != store.Completed || len(began) != 3 {
			t.Fatalf("after %d attempts the record is %v: %s", len(began), r.State, r.LastError)
		}
		if took := began[2].Sub(began[1]); took > 10*time.Second {
			t.Errorf("the third attempt begins %v after the second, which took 3 s", took)
		}
	})
}
