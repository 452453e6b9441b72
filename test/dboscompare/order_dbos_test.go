package dboscompare

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
)

// dbosRunner runs orders as workflows of DBOS. DBOS has no compensations, so the workflow
// has them: after an error it runs them as steps, in reverse order.
type dbosRunner struct {
	root     dbos.Context
	workflow dbos.Workflow[string, string]
	retries  int
	timeout  time.Duration
}

func openDBOS(ctx context.Context, s *spec) (runner, error) {
	root, err := dbos.NewContext(ctx, dbos.Config{
		AppName: "compare", DatabaseURL: s.URL, ExecutorID: s.Executor, ApplicationVersion: s.Version,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	r := &dbosRunner{root: root, retries: s.Retries, timeout: s.Deadline}
	r.workflow = func(ctx dbos.Context, id string) (string, error) {
		var done []string
		for _, step := range s.Steps {
			var err error
			if step == nap {
				if id == s.Sleeper {
					_, err = dbos.Sleep(ctx, s.Nap)
				}
			} else {
				err = r.send(ctx, s, id, step, false)
			}
			if err != nil {
				for _, step := range slices.Backward(done) {
					if undoErr := r.send(ctx, s, id, step, true); undoErr != nil {
						return "", errors.Join(err, undoErr)
					}
				}
				return "", err
			}
			if step != nap {
				done = append(done, step)
			}
		}
		return "done " + id, nil
	}
	dbos.RegisterWorkflow(root, r.workflow, dbos.WithWorkflowName(order))
	return r, dbos.Launch(root)
}

// send makes a step, with a key of the workflow's id and the step's name.
func (r *dbosRunner) send(ctx dbos.Context, s *spec, id, step string, undo bool) error {
	c := call{Process: s.Process, Saga: id, Step: step, Undo: undo}
	c.Key = id + "/" + c.String()
	_, err := dbos.RunAsStep(ctx, func(ctx context.Context) (string, error) { return step, tell(ctx, s.Ledger, &c) },
		dbos.WithStepName(c.String()), dbos.WithStepMaxRetries(r.retries), dbos.WithStepBaseInterval(20*time.Millisecond),
		dbos.WithStepRetryPredicate(func(err error) bool { return !errors.Is(err, errRefused) }))
	return err
}

func (r *dbosRunner) run(ctx context.Context, id string) (string, error) {
	c := r.root.From(r.root, ctx)
	if r.timeout > 0 {
		var cancel context.CancelFunc
		c, cancel = r.root.WithTimeout(c, r.timeout)
		defer cancel()
	}
	h, err := dbos.RunWorkflow(c, r.workflow, id, dbos.WithWorkflowID(id))
	if err != nil {
		return "", err
	}
	return h.GetResult()
}

// work waits: DBOS works since Launch.
func (r *dbosRunner) work(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (r *dbosRunner) close() error { return dbos.Shutdown(r.root, time.Minute) }

// dbosStatus is the status of a workflow, and its error.
func dbosStatus(c dbos.Client, id string) (string, bool) {
	list, err := dbos.ListWorkflows(c, dbos.WithFilterWorkflowIDs(id), dbos.WithFilterLoadOutput(true))
	if err != nil || len(list) == 0 {
		return fmt.Sprint("not found ", err), false
	}
	w := list[0]
	text := string(w.Status)
	if w.Error != nil && w.Error.Error() != "" {
		text += ": " + w.Error.Error()
	}
	return text, w.Status != dbos.WorkflowStatusPending && w.Status != dbos.WorkflowStatusEnqueued
}

func (r *dbosRunner) status(_ context.Context, id string) (string, bool) {
	return dbosStatus(r.root, id)
}

// recorded returns the recorded result of a step, and when it ends.
func (r *dbosRunner) recorded(_ context.Context, id, step string) string {
	if step == nap {
		step = "DBOS.sleep"
	}
	steps, err := dbos.GetWorkflowSteps(r.root, id)
	if err != nil {
		return ""
	}
	for _, s := range steps {
		if s.StepName == step {
			return strconv.FormatInt(s.CompletedAt.UnixMilli(), 10)
		}
	}
	return ""
}

// again makes an operator rewind a workflow to its last step.
func (r *dbosRunner) again(_ context.Context, id string) error {
	steps, err := dbos.GetWorkflowSteps(r.root, id)
	if err != nil {
		return err
	}
	_, err = dbos.RewindWorkflow[string](r.root, id, dbos.WithRewindStartStep(uint(steps[len(steps)-1].StepID)))
	return err
}
