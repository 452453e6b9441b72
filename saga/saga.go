package saga

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/bridge"
	"github.com/semel-go/semel/internal/callback"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/internal/names"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// Definition says what a saga does. All processes that run it must agree on Name.
type Definition[In, Out any] struct {
	// Name names the saga in its key, in logs and for operators. It must never change.
	// 1 to 249 bytes without '#'.
	Name string
	// Steps has the name of each step, sleep and event of Run: 1 to 238 bytes without
	// '#' and ':'. A name that ends with "/*" stands for all names with that beginning:
	// "mail/*" for "mail/ann". If the record of a saga has a step that is not in Steps,
	// the saga is parked before anything of it runs. So a deploy that drops or renames a
	// step is noticed.
	Steps []string
	// Run makes the steps, one after the other or in a Group. It runs from the start
	// in each attempt, so between steps it must depend on in and on the results of
	// steps only: not on the time, on random numbers or on other data. If a step
	// returns an error, Run normally returns it. After Run has returned, the saga waits
	// for the steps that Run has left running in goroutines.
	Run func(ctx context.Context, r *Run, in In) (Out, error)

	// Deadline is how long a saga may go on, from its start by the store's clock. Then
	// it turns back with a *semel.Failure of CodeDeadline. Zero: no limit.
	Deadline time.Duration
	// StuckAtDeadline parks the saga at its deadline, instead of turning it back.
	StuckAtDeadline bool
	// MaxAttempts is how many attempts in a row may fail. Then the saga is parked. The
	// count begins again with an attempt that has recorded a step, unless its process
	// died. Zero: no limit.
	MaxAttempts int
	// UndoAttempts is MaxAttempts for a saga that has turned back: 10 by default. The
	// attempts before that do not count.
	UndoAttempts int
	// Backoff is the pause after failed attempt n (1, 2, …) without progress. Nil, or if
	// Backoff panics: 1 s, 2 s, 4 s and so on, at most 1 min.
	Backoff func(n int) time.Duration
}

// Saga runs a definition over a Guard's store. Safe for concurrent use.
type Saga[In, Out any] struct {
	definition Definition[In, Out]
	rules      rules
	core
}

// core is the part of a Saga that does not depend on its types.
type core struct {
	name   string
	guard  *semel.Guard
	driver guardMethods
	store  store.Store
	timers store.Timers
	lease  time.Duration
	nudge  chan struct{} // tells a worker of this process that a saga is due
}

// rules are the parts of a Definition that a Run needs.
type rules struct {
	steps        []string
	deadline     time.Duration
	park         bool
	maxAttempts  int
	undoAttempts int
	backoff      func(n int) time.Duration
}

// lists reports whether a name is one of Definition.Steps.
func (r *rules) lists(name string) bool {
	return slices.ContainsFunc(r.steps, func(s string) bool {
		prefix, many := strings.CutSuffix(s, "*")
		return s == name || many && strings.HasSuffix(prefix, "/") && strings.HasPrefix(name, prefix)
	})
}

// guardMethods and executionMethods are the methods of package semel that only
// packages driver and saga can call.
type guardMethods interface {
	Store() store.Store
	Options() semel.Options
	RunSaga(ctx context.Context, call semel.Call, created time.Time, fn semel.Handler) (semel.Result, error)
}

type executionMethods interface {
	Encode(v any) (store.Outcome, error)
	Fresh() bool
	Interrupted() bool
	Created() time.Time
	Now() time.Time
	Steps(ctx context.Context) (map[string]*store.Step, error)
	RecordSize(upcoming []string) (count, bytes, reserved int)
}

// New makes a saga of a definition. It does no I/O. The Guard gives the store, lease,
// retention, codecs and observer. It must retry after doubt (OnDoubt), because a saga
// decides about doubt for each step: see Parked.
func New[In, Out any](guard *semel.Guard, d Definition[In, Out]) (*Saga[In, Out], error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	s := &Saga[In, Out]{definition: d, core: core{name: d.Name, guard: guard, nudge: make(chan struct{}, 1)}}
	if guard == nil {
		bad("guard: is nil")
	} else if s.driver = bridge.Guard(guard).(guardMethods); s.driver.Store() == nil {
		bad("guard: is the zero Guard; make one with semel.New")
	} else {
		o := s.driver.Options()
		s.store, s.lease = s.driver.Store(), o.Lease
		if o.OnDoubt != semel.Retry || o.Rerun || o.UnprotectedOnOutage || o.MaxAttempts != 0 {
			bad("guard: has OnDoubt Park, Rerun, UnprotectedOnOutage or MaxAttempts, which a saga cannot have; use Parked for a step and Definition.MaxAttempts")
		}
		if o.HashKeys != nil {
			bad("guard: has HashKeys, which a saga cannot have, because workers find sagas in the store and need their ids; make a Guard without it, and ids without personal data")
		}
		if _, ok := store.As[store.Journal](s.store); !ok {
			bad("guard: its store keeps no steps: it does not implement store.Journal")
		}
		var ok bool
		if s.timers, ok = store.As[store.Timers](s.store); !ok {
			bad("guard: its store cannot find the sagas that are due: it does not implement store.Timers, as the stores of this repository do")
		}
	}
	if err := names.CheckOperation(d.Name); err != nil {
		bad("name: %w", err)
	} else if most := names.Max - len(protocol.SagaSuffix); len(d.Name) > most {
		bad("name: has %d bytes; at most %d are allowed", len(d.Name), most)
	}
	for _, step := range d.Steps {
		if err := checkStep(step); err != nil {
			bad("steps: %w", err)
		}
	}
	if len(d.Steps) == 0 {
		bad("steps: is empty; list the name of each step")
	}
	if d.Run == nil {
		bad("run: is nil")
	}
	if d.Deadline < 0 || d.MaxAttempts < 0 || d.UndoAttempts < 0 {
		bad("Deadline %v, MaxAttempts %d and UndoAttempts %d must not be negative", d.Deadline, d.MaxAttempts, d.UndoAttempts)
	}
	if len(errs) > 0 {
		return nil, &semel.Error{Reason: semel.ErrInvalid, Operation: d.Name, Cause: fmt.Errorf("saga: %w", errors.Join(errs...))}
	}
	s.rules = rules{steps: slices.Clone(d.Steps), deadline: d.Deadline, park: d.StuckAtDeadline, maxAttempts: d.MaxAttempts, undoAttempts: d.UndoAttempts, backoff: d.Backoff}
	if s.rules.undoAttempts == 0 {
		s.rules.undoAttempts = 10
	}
	if s.rules.backoff == nil {
		s.rules.backoff = callback.DefaultBackoff
	} else {
		s.rules.backoff = callback.Backoff("saga", d.Backoff)
	}
	return s, nil
}

// maxStep is the longest name of a step, in bytes. Semel records the name with additions, and
// the longest is of a thousandth skip of a compensation that did not count.
const maxStep = names.Max - len(undoPart+history.SagaUnskip+"1000")

// checkStep refuses the name of a step. Semel's own steps have a ':'.
func checkStep(name string) error {
	if err := names.Check("step", name); err != nil {
		return err
	}
	switch {
	case len(name) > maxStep:
		return fmt.Errorf("the name of a step has %d bytes; at most %d are allowed, because Semel records it with additions: %q", len(name), maxStep, name)
	case strings.ContainsAny(name, "#:") || name == "saga":
		return fmt.Errorf("the name %q of a step must not be saga or contain '#' or ':', which separate it from Semel's additions", name)
	}
	return nil
}

// key is the key of the saga's record.
func (c *core) key(tenant, id string) store.Key {
	if tenant == semel.Shared {
		tenant = ""
	}
	return store.Key{Operation: c.name + protocol.SagaSuffix, Tenant: tenant, Value: id}
}
