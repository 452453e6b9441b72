package dboscompare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore"
)

// semelRunner runs orders as sagas of Semel.
type semelRunner struct {
	store *pgstore.Store
	saga  *saga.Saga[string, string]
}

// order is the name of the saga and of the workflow.
const order = "order"

func openSemel(ctx context.Context, s *spec) (runner, error) {
	st, err := pgstore.Open(ctx, s.URL, nil)
	if err != nil {
		return nil, err
	}
	guard, err := semel.New(st, &semel.Options{Lease: s.Lease})
	if err != nil {
		return nil, err
	}
	send := func(ctx context.Context, r *saga.Run, step string, at saga.At, undo bool) error {
		err := tell(ctx, s.Ledger, &call{Process: s.Process, Saga: r.ID(), Step: step, Key: at.Key(), Undo: undo, InDoubt: undo && at.InDoubt()})
		if errors.Is(err, errRefused) {
			return semel.Final(err)
		}
		return err
	}
	d := saga.Definition[string, string]{
		Name: order, Steps: s.Steps, Deadline: s.Deadline, UndoAttempts: 3,
		Backoff: func(int) time.Duration { return 20 * time.Millisecond },
		Run: func(ctx context.Context, r *saga.Run, id string) (string, error) {
			for _, step := range s.Steps {
				if step == nap {
					if r.ID() == s.Sleeper {
						if err := saga.Sleep(ctx, r, step, s.Nap); err != nil {
							return "", err
						}
					}
					continue
				}
				var options []saga.StepOption
				if step == s.Parked {
					options = append(options, saga.Parked())
				}
				_, err := saga.Step(ctx, r, step, func(ctx context.Context, at saga.At) (string, error) {
					return step, send(ctx, r, step, at, false)
				}, func(ctx context.Context, at saga.At, _ string) error {
					return send(ctx, r, step, at, true)
				}, options...)
				if err != nil {
					return "", err
				}
			}
			return "done " + id, nil
		},
	}
	o, err := saga.New(guard, d)
	return &semelRunner{st, o}, err
}

func (r *semelRunner) run(ctx context.Context, id string) (string, error) {
	return r.saga.Do(ctx, semel.Shared, id, id)
}

// work runs one saga at a time.
func (r *semelRunner) work(ctx context.Context) error {
	return r.saga.Work(ctx, &saga.WorkOptions{Concurrency: 1, Every: 50 * time.Millisecond})
}

func (r *semelRunner) close() error { return r.store.Close() }

// status is the state of a saga's record, and its last error.
func (r *semelRunner) status(ctx context.Context, id string) (string, bool) {
	f, err := r.store.Get(ctx, saga.Key(order, "", id))
	if err != nil {
		return err.Error(), false
	}
	state := f.Record.State
	text := state.String()
	if f.Record.LastError != "" {
		text += ": " + f.Record.LastError
	}
	return text, state.Terminal() || state == store.Unknown
}

// recorded returns the recorded result of a step.
func (r *semelRunner) recorded(ctx context.Context, id, step string) string {
	f, err := r.store.Get(ctx, saga.Key(order, "", id))
	if err != nil {
		return ""
	}
	steps, err := journalOf(r.store).Steps(ctx, f.Record.Lease())
	if err != nil {
		return ""
	}
	for i := range steps {
		if steps[i].Name == step {
			return string(steps[i].Outcome.Body)
		}
	}
	return ""
}

// again makes an operator retry a stuck saga.
func (r *semelRunner) again(ctx context.Context, id string) error {
	f, err := r.store.Get(ctx, saga.Key(order, "", id))
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	return saga.Intervene(ctx, r.store, f.Record, saga.Intervention{Why: "a test: the other system works again"})
}
