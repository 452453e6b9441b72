package orders

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
)

// sagas is the app with Semel: each order is a saga.
type sagas struct {
	*worker
	store *sqlitestore.Store
	saga  *saga.Saga[Order, string]
	ids   sync.Map // the orders that this process runs, by the short form of their key
}

const (
	name = "order"
	// lookEvery is short, so that the orders of a killed worker go on soon. In
	// production it would be the default, 1 s.
	lookEvery = 50 * time.Millisecond
)

func openSagas(ctx context.Context, o *Options, w *worker) (App, error) {
	st, err := sqlitestore.Open(ctx, o.File, &sqlitestore.Options{BusyTimeout: 20 * time.Second, Relaxed: true})
	if err != nil {
		return nil, err
	}
	s := &sagas{worker: w, store: st}
	guard, err := semel.New(st, &semel.Options{Lease: o.Lease, Observe: s.observe})
	if err == nil {
		s.saga, err = saga.New(guard, s.definition())
	}
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return s, nil
}

func (s *sagas) definition() saga.Definition[Order, string] {
	return saga.Definition[Order, string]{
		Name: name, Steps: []string{string(Pay), string(Hold), string(Book)},
		Run: func(ctx context.Context, r *saga.Run, o Order) (string, error) {
			s.ids.Store(saga.Key(name, semel.Shared, o.ID).Short(), o.ID)
			for _, step := range []struct{ do, undo Step }{{Pay, Refund}, {Hold, Release}} {
				if _, err := saga.Step(ctx, r, string(step.do), s.do(&o, step.do), s.undo(&o, step.undo)); err != nil {
					return "", err
				}
			}
			return saga.Step(ctx, r, string(Book), s.do(&o, Book), nil)
		},
	}
}

// do is the function of a step. Its result is the key of its request.
func (s *sagas) do(o *Order, step Step) func(context.Context, saga.At) (string, error) {
	return func(ctx context.Context, at saga.At) (string, error) {
		err := s.send(ctx, o, step, at.Key(), "")
		if errors.Is(err, ErrRefused) {
			err = semel.Final(err)
		}
		return at.Key(), err
	}
}

func (s *sagas) undo(o *Order, step Step) func(context.Context, saga.At, string) error {
	return func(ctx context.Context, at saga.At, _ string) error {
		return s.send(ctx, o, step, at.Key(), at.StepKey())
	}
}

// observe notes the ends of runs. The events of steps have other operations.
func (s *sagas) observe(_ context.Context, e semel.Event) {
	if s.diary == nil || !e.EndsCall || e.Operation != saga.Key(name, "", "").Operation {
		return
	}
	id, ok := s.ids.LoadAndDelete(e.Key)
	if !ok {
		return
	}
	kind := Left
	if e.Kind == semel.EventExecuted || e.Kind == semel.EventFailed {
		kind = Ended
	}
	s.diary.note(&Entry{Kind: kind, Order: id.(string)})
}

// Place implements App. It sends again what the store did not answer in time, as a
// client does: a second start of an order does nothing.
func (s *sagas) Place(ctx context.Context, o *Order) error {
	for {
		err := s.saga.Start(ctx, semel.Shared, o.ID, *o)
		if !errors.Is(err, semel.ErrUnavailable) && !errors.Is(err, semel.ErrInProgress) {
			return err
		}
		if pause(ctx, lookEvery) != nil {
			return err
		}
	}
}

// Work implements App.
func (s *sagas) Work(ctx context.Context) error {
	s.diary.note(&Entry{Kind: Boot})
	return s.saga.Work(ctx, &saga.WorkOptions{Concurrency: concurrency, Every: lookEvery})
}

// Answers implements App.
func (s *sagas) Answers(ctx context.Context) (map[string]Answer, error) {
	answers := map[string]Answer{}
	for f, err := range s.store.List(ctx, store.Filter{Operation: saga.Key(name, "", "").Operation}) {
		if err != nil {
			return nil, err
		}
		a := Answer{}
		switch f.Record.State {
		case store.Completed:
			a.End = Booked
		case store.Failed:
			a.End = Undone
		}
		answers[f.Record.Key.Value] = a
	}
	return answers, nil
}

// Close implements App.
func (s *sagas) Close() error { return s.store.Close() }
