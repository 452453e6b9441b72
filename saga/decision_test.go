package saga_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/encrypted"
	"github.com/semel-go/semel/store/memstore"
	"github.com/semel-go/semel/sweep"
)

// cut is the connection of an operator that is lost for good after some requests.
type cut struct {
	*process
	afterSwap  bool // the answer to Swap is lost, too
	afterSteps int
}

func (c *cut) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	f, err := c.process.Swap(ctx, seen, p)
	if c.afterSwap {
		c.kill()
		return store.Found{}, errors.Join(errBoom, err)
	}
	return f, err
}

func (c *cut) RecordStep(ctx context.Context, l store.Lease, s store.Step) error {
	if c.afterSteps == 0 {
		c.kill()
	}
	c.afterSteps--
	return c.process.RecordStep(ctx, l, s)
}

// The connection of an operator is lost in the middle of a decision. The saga stays stuck, as
// before, whoever looks at it next, until somebody decides again.
func TestIntervene_Interrupted_SagaStaysStuck(t *testing.T) {
	t.Parallel()
	back := saga.Intervention{Why: "ann", Back: true, NotHappened: []string{"charge"}}
	for name, c := range map[string]struct {
		lost cut
		next func(t *testing.T, s *saga.Saga[order, string])
	}{
		"the answer to the claim, then a worker": {cut{afterSwap: true}, func(t *testing.T, s *saga.Saga[order, string]) { work(t, 30*time.Minute, s) }},
		"no step is recorded, then a worker":     {cut{}, func(t *testing.T, s *saga.Saga[order, string]) { work(t, 30*time.Minute, s) }},
		"two steps are recorded, then a worker":  {cut{afterSteps: 2}, func(t *testing.T, s *saga.Saga[order, string]) { work(t, 30*time.Minute, s) }},
		"one step is recorded, then a caller": {cut{afterSteps: 1}, func(t *testing.T, s *saga.Saga[order, string]) {
			<-time.After(2 * time.Minute) // until the operator's claim has lapsed
			if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
				t.Errorf("error %v, want ErrParked", err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
				w.after = once("charge", errBoom)
				s := newSaga(t, st, w.parked())
				if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
					t.Fatalf("error %v, want ErrParked", err)
				}
				c.lost.process = newProcess(st)
				if err := saga.Intervene(t.Context(), &c.lost, record(t, st, "1"), back); !errors.Is(err, semel.ErrUnavailable) {
					t.Errorf("the operator is told %v; want ErrUnavailable", err)
				}
				c.next(t, s)
				w.done(t, "hold", "charge")
				r := record(t, st, "1")
				if r.State != store.Unknown || !strings.Contains(r.LastError, "an operator's decision was interrupted, so decide again; before it: ") || !strings.Contains(r.LastError, `step "charge" may have happened`) {
					t.Fatalf("the saga is %v: %s", r.State, r.LastError)
				}
				again := saga.Intervention{Back: !recordedStep(t, st, history.SagaBack)}
				if !recordedStep(t, st, "charge:none:1") {
					again.NotHappened = back.NotHappened
				}
				decide(t, st, again)
				work(t, time.Hour, s)
				w.done(t, "hold", "charge", "undo hold")
			})
		})
	}
}

// mute is a process that dies when it settles.
type mute struct{ *process }

func (m mute) Settle(ctx context.Context, l store.Lease, s store.Settlement) error {
	m.kill()
	return m.process.Settle(ctx, l, s)
}

// noTimer is a process that can set no timer.
type noTimer struct{ *process }

func (noTimer) SetTimer(context.Context, store.Key, store.Owner, store.Owner, time.Duration) (bool, error) {
	return false, errBoom
}

// The run that takes over an interrupted decision has no end of its own. The saga is stuck
// all the same, as soon as a worker can say so.
func TestIntervene_InterruptedThenRunFails_SagaStaysStuck(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func(p *process) store.Store{
		"it dies, and a sweep releases it": func(p *process) store.Store { return mute{p} },
		"it can set no timer":              func(p *process) store.Store { return noTimer{p} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
				w.after = once("charge", errBoom)
				s := newSaga(t, st, w.parked())
				_, _ = s.Do(t.Context(), "ann", "1", book)
				back := saga.Intervention{Why: "ann", Back: true, NotHappened: []string{"charge"}}
				_ = saga.Intervene(t.Context(), &cut{process: newProcess(st), afterSteps: 1}, record(t, st, "1"), back)
				<-time.After(2 * time.Minute) // until the operator's claim has lapsed
				if _, err := newSaga(t, bad(newProcess(st)), w.parked()).Do(t.Context(), "ann", "1", book); err == nil {
					t.Fatal("the saga goes on")
				}
				<-time.After(2 * time.Minute)
				if _, err := sweep.Once(t.Context(), st, nil); err != nil {
					t.Fatal(err)
				}
				work(t, 30*time.Minute, s)
				w.done(t, "hold", "charge")
				if r := record(t, st, "1"); r.State != store.Unknown || !strings.Contains(r.LastError, "an operator's decision was interrupted") {
					t.Errorf("the saga is %v: %s", r.State, r.LastError)
				}
			})
		})
	}
}

func recordedStep(t *testing.T, st *memstore.Store, name string) bool {
	t.Helper()
	r := record(t, st, "1")
	steps, err := st.Steps(t.Context(), r.Lease())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		if s.Name == name {
			return true
		}
	}
	return false
}

// An operator without the keys would write what the workers cannot read, or skip a step that
// the error, which is encrypted, does not name.
func TestIntervene_EncryptedWithoutKeys_IsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.MaxAttempts = 1
		w.after = once("charge", errBoom)
		cipher := &encrypted.Cipher{Keys: oneKey{}, RequireEncrypted: true}
		guard, err := semel.New(st, &semel.Options{Encryption: cipher})
		if err != nil {
			t.Fatal(err)
		}
		s, err := saga.New(guard, d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
			t.Fatalf("error %v, want ErrParked", err)
		}
		i := saga.Intervention{Why: "ann", Done: "charge", Result: []byte(`"result of charge"`)}
		if err := saga.Intervene(t.Context(), st, record(t, st, "1"), i); !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "--encryption-keys") {
			t.Errorf("without keys: error %v", err)
		}
		keyed := cipher.Store(st)
		f, err := keyed.Get(t.Context(), record(t, st, "1").Key)
		if err != nil {
			t.Fatal(err)
		}
		if err := saga.Intervene(t.Context(), keyed, f.Record, i); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Do(t.Context(), "ann", "1", book); err != nil {
			t.Error(err)
		}
		w.done(t, "hold", "charge", "book")
	})
}

// A step whose result was too large to keep has happened. An operator can give a result.
func TestIntervene_ResultTooLarge_CanBeSkipped(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.MaxAttempts = 1
		w.before = once("book", errBoom)
		d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			v, err := saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) {
				return strings.Repeat("x", 3<<20), w.act("charge", "")
			}, nil)
			if err == nil {
				_, err = w.step(ctx, r, "book")
			}
			return v, err
		}
		s := newSaga(t, st, d)
		for _, stuckAt := range []string{"book", "charge"} { // the first run has the result
			if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) || !strings.Contains(err.Error(), stuckAt) {
				t.Fatalf("error %v, want one that says %s", err, stuckAt)
			}
			if stuckAt == "book" {
				decide(t, st, saga.Intervention{})
			}
		}
		decide(t, st, saga.Intervention{Done: "charge", Result: []byte(`"a short one"`)})
		if got, err := s.Do(t.Context(), "ann", "1", book); err != nil || got != "a short one" {
			t.Errorf("%q, %v", got, err)
		}
		w.done(t, "charge", "book")
	})
}

// The record keeps only the beginning of a long error. A step behind it can be skipped, too.
func TestIntervene_ManyUnfinished_EachCanBeSkipped(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.MaxAttempts, d.Steps = 1, []string{"mail/*"}
		name := func(n int) string { return fmt.Sprintf("mail/customer-%02d@example.com", n) }
		const mails = 30
		d.Run = func(ctx context.Context, r *saga.Run, _ order) (string, error) {
			g := r.Group(mails)
			for n := range mails {
				g.Go(func() error {
					_, err := saga.Step(ctx, r, name(n), func(context.Context, saga.At) (string, error) { return "", errBoom }, nil)
					return err
				})
			}
			return "", g.Wait()
		}
		s := newSaga(t, st, d)
		for n := range mails {
			if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
				t.Fatalf("error %v, want ErrParked", err)
			}
			decide(t, st, saga.Intervention{Done: name(n), Result: []byte(`""`)})
		}
		if _, err := s.Do(t.Context(), "ann", "1", book); err != nil {
			t.Error(err)
		}
	})
}

// Decisions leave room in the record for turning back and for the compensations.
func TestIntervene_NoRoom_IsRefusedWhileBackIsPossible(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, st *memstore.Store, w *world) {
		d := w.three()
		d.MaxAttempts, d.UndoAttempts = 1, 1
		w.after = func(step string) error {
			if step == "charge" {
				return errBoom
			}
			return nil
		}
		s := newSaga(t, st, d)
		parks := func() {
			t.Helper()
			if _, err := s.Do(t.Context(), "ann", "1", book); !errors.Is(err, semel.ErrParked) {
				t.Fatalf("error %v, want ErrParked", err)
			}
		}
		parks()
		large := saga.Intervention{Why: "ann", Done: "charge", Result: []byte(`"` + strings.Repeat("x", store.MaxStepBytes-32<<10) + `"`)}
		if err := saga.Intervene(t.Context(), st, record(t, st, "1"), large); !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "no room") {
			t.Errorf("a large result: error %v", err)
		}
		refused := false
		for !refused {
			err := saga.Intervene(t.Context(), st, record(t, st, "1"), saga.Intervention{Why: "ann"})
			if refused = errors.Is(err, semel.ErrInvalid); !refused {
				if err != nil {
					t.Fatal(err)
				}
				parks()
			}
		}
		decide(t, st, saga.Intervention{Back: true})
		_, err := s.Do(t.Context(), "ann", "1", book)
		if r := record(t, st, "1"); r.State != store.Failed {
			t.Errorf("the saga is %v: %v", r.State, err)
		}
	})
}
