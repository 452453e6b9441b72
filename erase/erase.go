// Package erase deletes the records of a tenant, or of one call, before they expire,
// because somebody's data must be erased. The command semel erase uses it.
//
// A later duplicate of an erased call is a new call, and runs again. Stop the tenant's
// calls first, or erase only the answers: see [Options.AnswersOnly].
//
// Records of calls that run, that are in doubt or that are unfinished are left, and the
// [Report] counts them. docs/data-protection.md says what stays in logs, backups, caches
// and the files of each database.
package erase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

// Scope says whose records are erased.
type Scope struct {
	// Tenant is the tenant. It is required, so that no mistake erases everything; only
	// for one Key may it be empty, which means that all tenants share the key. With
	// semel.Options.HashKeys it is the hash, and so is Key: see store.Key.Hashed.
	Tenant string
	// Operation is the operation of the records, or the name of a saga. Empty: all.
	Operation string
	// Key is the key of one call, and needs an Operation. Empty: all calls.
	Key string
}

// Options configures Run. Nil and zero fields mean the defaults.
type Options struct {
	// CountOnly counts what Run would erase, and changes nothing.
	CountOnly bool
	// AnswersOnly keeps the records, so that a duplicate does not run again, and erases
	// the rest: the result, the steps, the text of the last error, the holder and the
	// former owners. Duplicates get semel.ErrNotKept, or a failure without a message; for
	// a token of a call that had steps it is semel.ErrExpired.
	// Operation, tenant, key and the hash of the payload stay until the record expires.
	// If results are encrypted, the store must be encrypted.Cipher's.
	AnswersOnly bool
	// StoreTimeout is how long one request to the store may take: 30 s by default.
	StoreTimeout time.Duration
	// Observe gets each record that Run has erased or left. Nil: nothing.
	Observe func(ctx context.Context, i Item)
}

// Item is one record that Run has looked at, or a timer that cannot be read.
type Item struct {
	// Key is the key of the record; zero if it cannot be read.
	Key   store.Key
	State store.State
	Fence uint64
	// Result says what became of it.
	Result Result
	// Err says why it is left; nil if it is erased.
	Err error
}

// Result is what became of a record.
type Result uint8

const (
	// Erased means that the record is gone, or its answer with AnswersOnly.
	Erased Result = iota
	// Running means that the call is reserved or runs, or that its process died and no
	// sweep has recovered it. Wait until it has ended.
	Running
	// InDoubt means that nobody knows whether the call took effect. Resolve it first.
	InDoubt
	// Unfinished means that a later attempt goes on with the call: it is a saga that has
	// not ended, or some of its steps are done. Without its record they would run again.
	Unfinished
	// Failed means that the store did not erase the record, or that a timer, whose tenant is
	// not known, cannot be read.
	Failed
)

// Report counts records.
type Report struct {
	Erased                               int
	Running, InDoubt, Unfinished, Failed int // left
	// Timers are timers of sagas that have ended, which are dropped. A timer without a
	// record is found if Scope.Operation names the saga, or another record of it is there.
	Timers int
}

// Left is how many records are left.
func (r *Report) Left() int { return r.Running + r.InDoubt + r.Unfinished + r.Failed }

func (r *Report) count(result Result) {
	*[...]*int{Erased: &r.Erased, Running: &r.Running, InDoubt: &r.InDoubt, Unfinished: &r.Unfinished, Failed: &r.Failed}[result]++
}

// Run erases the records of a scope, one after the other. It can be stopped at any time,
// and begun again: an erased record is not there any more. If the store does not erase a
// record, Run goes on with the others. Except for AnswersOnly, give it the store without
// encryption, so that it can erase records whose keys are gone. The error wraps
// semel.ErrInvalid if the scope or an option is wrong, or semel.ErrUnavailable if the store
// does not answer, does not list all records or does not confirm that they are gone (see
// store.Confirmer), or ctx ends; the Report then counts what was done, the last change included.
func Run(ctx context.Context, st store.Store, s Scope, o *Options) (Report, error) {
	e := &eraser{store: st, scope: s, sagas: map[string]bool{}}
	if o != nil {
		e.options = *o
	}
	e.options.StoreTimeout = cmp.Or(e.options.StoreTimeout, 30*time.Second)
	if err := e.check(); err != nil {
		return Report{}, &semel.Error{Reason: semel.ErrInvalid, Operation: s.Operation, Cause: fmt.Errorf("erase: %w", err)}
	}
	if s.Operation != "" {
		e.sagas[s.Operation+protocol.SagaSuffix] = false
	}
	err := e.records(ctx)
	for operation := range e.sagas { // of sagas that have ended meanwhile, or have no record
		if err == nil {
			err = e.dropTimers(ctx, operation)
		}
	}
	if err == nil && !e.options.CountOnly {
		err = e.confirm(ctx)
	}
	if e.unreadable != nil {
		e.note(ctx, Item{Result: Failed, Err: fmt.Errorf("a timer of a saga, maybe of another tenant: %w", e.unreadable)})
	}
	if err != nil {
		err = &semel.Error{Reason: semel.ErrUnavailable, Operation: s.Operation, Cause: err}
	}
	return e.report, err
}

// eraser is one Run.
type eraser struct {
	store   store.Store
	inner   store.Eraser
	lister  store.Lister
	scope   Scope
	options Options
	report  Report
	sagas   map[string]bool // the operations of sagas that were seen (true) or that the scope names

	unreadable error // why a timer could not be read
}

func (e *eraser) check() (err error) {
	var canErase, canList bool
	e.inner, canErase = store.As[store.Eraser](e.store)
	e.lister, canList = store.As[store.Lister](e.store)
	s := &e.scope
	switch {
	case e.store == nil:
		return errors.New("the store is nil")
	case s.Tenant == "" && s.Key == "":
		return errors.New("Scope.Tenant is empty; name the tenant, or one key that all tenants share")
	case s.Tenant == semel.Shared:
		return errors.New("Scope.Tenant is semel.Shared; leave it empty for a key that all tenants share")
	case s.Key != "" && s.Operation == "":
		return errors.New("Scope.Operation is empty; a key needs its operation")
	case strings.Contains(s.Operation, "#"):
		return fmt.Errorf("Scope.Operation is %q; give the part before the #", s.Operation)
	case e.options.StoreTimeout < time.Millisecond:
		return fmt.Errorf("Options.StoreTimeout is %v; it must be at least 1ms", e.options.StoreTimeout)
	case !canErase:
		return errors.New("the store cannot erase: it does not implement store.Eraser, as the stores of this repository do")
	case s.Key == "" && !canList:
		return errors.New("the store cannot find the records of a tenant: it does not implement store.Lister; erase key by key")
	}
	return nil
}

// records erases the records of the scope.
func (e *eraser) records(ctx context.Context) error {
	if e.scope.Key != "" {
		for _, suffix := range []string{"", protocol.SagaSuffix, protocol.RerunSuffix} {
			k := store.Key{Operation: e.scope.Operation + suffix, Tenant: e.scope.Tenant, Value: e.scope.Key}
			f, err := e.get(ctx, k)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err := e.found(ctx, f, err); err != nil {
				return err
			}
		}
		return nil
	}
	var incomplete error // why the list may lack records
	for f, err := range e.lister.List(ctx, store.Filter{Tenant: e.scope.Tenant}) {
		if err != nil && f.Record.Key == (store.Key{}) && !errors.Is(err, store.ErrCorrupt) {
			incomplete = cmp.Or(incomplete, err)
		}
		base, _, _ := strings.Cut(f.Record.Key.Operation, "#") // a saga and a rerun have a suffix
		if err == nil && e.scope.Operation != "" && base != e.scope.Operation {
			continue
		}
		if err := e.found(ctx, f, err); err != nil {
			return err
		}
	}
	return incomplete
}

// found erases a record that was read, or leaves it.
func (e *eraser) found(ctx context.Context, f store.Found, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r := &f.Record
	result := Failed
	if err == nil {
		if err := e.dropFirst(ctx, r.Key); err != nil {
			return err
		}
		if r.Holder == erasedHolder && e.options.AnswersOnly && r.State.Terminal() {
			return nil
		}
		result, err = e.judge(ctx, &f)
	}
	if err == nil && result == Erased {
		err = e.erase(ctx, &f)
	}
	if err != nil && (result == Erased || result == Failed) { // it is the store's
		if store.Affects(err) == store.ExtentStore {
			return err
		}
		result = Failed
	}
	e.note(ctx, Item{Key: r.Key, State: r.State, Fence: r.Fence, Result: result, Err: err})
	return nil
}

// note counts and shows an item.
func (e *eraser) note(ctx context.Context, i Item) {
	e.report.count(i.Result)
	if e.options.Observe != nil {
		e.options.Observe(ctx, i)
	}
}

var (
	errRunning    = errors.New("the call is reserved, runs, or was left by a process that died")
	errInDoubt    = errors.New("nobody knows whether the call took effect")
	errSaga       = errors.New("the saga has not ended")
	errUnfinished = errors.New("a later attempt can go on with the call, some of whose steps are done")
	errAttempt    = errors.New("a later attempt can run the call again; it has no answer yet")
)

// judge says whether a record may be erased, and why not.
func (e *eraser) judge(ctx context.Context, f *store.Found) (Result, error) {
	r := &f.Record
	switch {
	case r.State == store.Unknown:
		return InDoubt, errInDoubt
	case !r.State.Erasable():
		return Running, errRunning
	case r.State.Terminal() || r.Expired(f.Now):
		return Erased, nil
	case protocol.IsSaga(r.Key):
		return Unfinished, errSaga
	case e.options.AnswersOnly:
		return Unfinished, errAttempt
	}
	hasSteps, err := e.hasSteps(ctx, r)
	switch {
	case err != nil:
		return Failed, err
	case hasSteps:
		return Unfinished, errUnfinished
	}
	return Erased, nil
}

// hasSteps reports whether the record has steps. Unreadable steps are steps.
func (e *eraser) hasSteps(ctx context.Context, r *store.Record) (bool, error) {
	journal, ok := store.As[store.Journal](e.store)
	if !ok {
		return false, nil
	}
	var steps []store.Step
	err := retry.Ask(ctx, e.options.StoreTimeout, func(ctx context.Context) (err error) {
		steps, err = journal.Steps(ctx, r.Lease())
		return err
	})
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		return false, store.ErrChanged
	case errors.Is(err, store.ErrCorrupt):
		return true, nil
	}
	return len(steps) > 0, err
}
