package saga

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/internal/retry"
	"github.com/semel-go/semel/store"
)

// CodeOperator is the code of a saga that an operator turned back.
const CodeOperator = "turned_back_by_operator"

// Key is the key of a saga's record, for operators. semel.Shared is no tenant.
func Key(name, tenant, id string) store.Key {
	return (&core{name: name}).key(tenant, id)
}

// Intervention is what an operator decides about a stuck saga.
type Intervention struct {
	// Why says who decides and for what reason. The record keeps it; callers do not get it.
	Why string
	// NotHappened names the Parked steps in doubt that did not happen. They may run
	// again. To take back an earlier skip that the saga could not use, name its step. If
	// Done is empty, or Back is true, each step in doubt must be named here or as Done,
	// because the saga would be stuck at it again.
	NotHappened []string
	// Done names a step that counts as done, and Result is the result in JSON that it would
	// have returned; null is the zero value. "charge:undo" is the compensation of "charge",
	// which has no result. Empty: none.
	// If a run finds that the name is no step, or cannot read the result, the saga is stuck
	// at that until the name is Done again, with another result, or in NotHappened.
	Done   string
	Result []byte
	// Back turns the saga back. A saga that has turned back already refuses it.
	Back bool
}

// encryptedCodec is the Codec of package store/encrypted.
const encryptedCodec = "semel/encrypted"

// errEncrypted refuses a decision that would not be encrypted as the rest of the record is.
const errEncrypted = "the record is encrypted, and this process has no keys: give those of the saga's workers (in the commands: --encryption-keys)"

// Intervene applies an operator's decision to a stuck saga, which goes on then. seen is
// the record that the operator has judged. store.ErrChanged: it has changed since, or is
// not stuck. semel.ErrInvalid: the decision does not fit the saga, and nothing has changed.
// semel.ErrUnavailable: the store did not answer, and it is not known what of the decision is
// recorded. If the saga is stuck then, it stays so until the next decision.
func Intervene(ctx context.Context, st store.Store, seen store.Record, i Intervention) error {
	op := seen.Key.Operation
	refuse := func(reason error, format string, args ...any) error {
		return &semel.Error{Reason: reason, Operation: op, Cause: fmt.Errorf(format, args...)}
	}
	journal, hasSteps := store.As[store.Journal](st)
	timers, hasTimers := store.As[store.Timers](st)
	switch {
	case !hasSteps || !hasTimers:
		return refuse(semel.ErrInvalid, "the store keeps no steps or no timers")
	case !protocol.IsSaga(seen.Key):
		return refuse(semel.ErrInvalid, "the record is not of a saga")
	case strings.TrimSpace(i.Why) == "":
		return refuse(semel.ErrInvalid, "Why is empty; say who decides and for what reason")
	case seen.State != store.Unknown:
		return refuse(store.ErrChanged, "the saga is %v, and only a stuck one (unknown) waits for an operator; read its record again", seen.State)
	case strings.HasPrefix(seen.LastError, encryptedCodec+":"):
		return refuse(semel.ErrInvalid, errEncrypted)
	}
	var recorded []store.Step
	err := retry.Ask(ctx, storeTimeout, func(ctx context.Context) (err error) {
		recorded, err = journal.Steps(ctx, seen.Lease())
		return err
	})
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		return &semel.Error{Reason: store.ErrChanged, Operation: op}
	case err != nil:
		return refuse(semel.ErrUnavailable, "read the steps: %w", err)
	case slices.ContainsFunc(recorded, func(s store.Step) bool { return s.Outcome.Codec == encryptedCodec }):
		return refuse(semel.ErrInvalid, errEncrypted)
	}
	steps, err := decisionSteps(&seen, recorded, &i)
	if err != nil {
		return refuse(semel.ErrInvalid, "%w", err)
	}
	p := proposalOf(&seen, i.Why)
	setTimer := func(wait time.Duration) error { // for a worker's next look
		return retry.Ask(ctx, storeTimeout, func(ctx context.Context) error {
			_, err := timers.SetTimer(ctx, seen.Key, store.Owner{}, protocol.NewOwner(), wait)
			return err
		})
	}
	if err := setTimer(p.Lease); err != nil { // before the claim, which may lapse
		return refuse(semel.ErrUnavailable, "nothing was changed: set the timer: %w", err)
	}
	var f store.Found
	err = retry.Ask(ctx, storeTimeout, func(ctx context.Context) (err error) {
		f, err = st.Swap(ctx, seen.Seen(), p)
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && !f.Won:
		return &semel.Error{Reason: store.ErrChanged, Operation: op}
	case err != nil:
		return &semel.Error{Reason: semel.ErrUnavailable, Operation: op, Cause: err}
	}
	lease := f.Record.Lease()
	settle := func(s store.Settlement) error { // also if the operator has left
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		return st.Settle(ctx, lease, s)
	}
	for n := range steps {
		err := retry.Ask(ctx, storeTimeout, func(ctx context.Context) error { return journal.RecordStep(ctx, lease, steps[n]) })
		if err != nil {
			// As it was. If that is not stored either, the next run finds the saga interrupted.
			_ = settle(store.Settlement{State: store.Unknown, Attempt: seen.Attempt, Error: seen.LastError})
			return refuse(semel.ErrUnavailable, "record %q: %w; the saga stays stuck, and a part of the decision may be recorded: look at its steps, and decide again", steps[n].Name, err)
		}
	}
	err = settle(store.Settlement{State: store.Released, Keep: protocol.UnfinishedSagaRetention, Error: protocol.SagaOperator + i.Why})
	if err != nil {
		return refuse(semel.ErrUnavailable, "%w; the decision is recorded, but the saga may stay stuck: look at it, and decide again if it does", err)
	}
	if err := setTimer(0); err != nil {
		return refuse(semel.ErrUnavailable, "it is decided, but the saga goes on only when a worker looks at it, within %v: %w", p.Lease, err)
	}
	return nil
}

// proposalOf claims a stuck saga for an operator.
func proposalOf(r *store.Record, why string) store.Proposal {
	return store.Proposal{
		Key: r.Key, State: store.Processing, Policy: r.Policy, Owner: protocol.NewOwner(), Holder: protocol.SagaOperator + why, Fingerprint: r.Fingerprint,
		Attempt: r.Attempt, Lease: time.Minute, Keep: protocol.UnfinishedSagaRetention, Error: r.LastError,
		FormerOwners: r.FormerOwnersAfter(store.Processing),
	}
}

// decisionSteps are the steps that an intervention and its decisions are recorded as. seen
// is the record of the stuck saga, and recorded has its steps. The error says why the
// intervention does not fit them.
func decisionSteps(seen *store.Record, recorded []store.Step, i *Intervention) ([]store.Step, error) {
	byName, has := map[string]*store.Step{}, map[string]bool{}
	count := 1
	for n := range recorded {
		byName[recorded[n].Name], has[recorded[n].Name] = &recorded[n], !recorded[n].Outcome.Gone // a result that was too large can be skipped
		if strings.HasPrefix(recorded[n].Name, history.SagaOperator) {
			count++
		}
	}
	stuck, skips := history.DescribeStuck(seen, recorded), history.Skips(byName)
	for name := range skips {
		has[name] = name != stuck.InvalidSkip
	}
	if i.Back && has[backStep] {
		return nil, backAlready(stuck)
	}
	for _, name := range i.NotHappened {
		switch {
		case !slices.Contains(stuck.InDoubt, name) && name != stuck.InvalidSkip:
			return nil, fmt.Errorf("step %q is neither a Parked step in doubt nor a skip that does not count", name)
		case name == i.Done:
			return nil, fmt.Errorf("step %q cannot both be done and not have happened", name)
		}
	}
	if name, ok := stuck.Undecided(i.NotHappened, i.Done, i.Back); ok {
		return nil, fmt.Errorf("step %q is in doubt; find out whether it happened: skip it if it did, and otherwise say that it did not happen", name)
	}
	text, err := json.Marshal(&history.SagaDecision{
		Why: i.Why, NotHappened: i.NotHappened, Done: i.Done, Back: i.Back,
		Stuck: &history.StuckAttempt{Attempt: seen.Attempt, Since: seen.Updated, Error: seen.LastError},
	})
	if err != nil {
		return nil, err
	}
	steps := []store.Step{{Name: history.SagaOperator + strconv.Itoa(count), Outcome: store.Outcome{Body: text, Codec: "json"}}}
	for _, name := range i.NotHappened {
		if name == stuck.InvalidSkip {
			steps = append(steps, store.Step{Name: strings.Replace(skips[name].Name, history.SagaSkip, history.SagaUnskip, 1)})
		}
		if !slices.Contains(stuck.InDoubt, name) {
			continue
		}
		n := 1
		for has[fmt.Sprintf("%s%s%d", name, nonePart, n)] {
			n++
		}
		steps = append(steps, store.Step{Name: fmt.Sprintf("%s%s%d", name, nonePart, n)})
	}
	if i.Done != "" {
		base, isUndo := strings.CutSuffix(i.Done, undoPart)
		if strings.Contains(base, ":") {
			return nil, fmt.Errorf("%q is neither a step nor a compensation, which is named STEP%s", i.Done, undoPart)
		}
		if err := checkStep(base); err != nil {
			return nil, err
		}
		if has[i.Done] {
			return nil, fmt.Errorf("step %q is recorded already, so that it does not run again and cannot be skipped", i.Done)
		}
		if err := canSkip(stuck, base, isUndo, i.Back); err != nil {
			return nil, err
		}
		o := store.Outcome{Body: i.Result, Codec: "json"}
		switch {
		case isUndo && len(i.Result) > 0:
			return nil, fmt.Errorf("%q is a compensation, which has no result; leave the result out", i.Done)
		case isUndo:
			o = store.Outcome{}
		case !json.Valid(i.Result):
			return nil, fmt.Errorf("step %q needs its result: the JSON that the step would have returned, or null", i.Done)
		}
		steps = append(steps, store.Step{Name: fmt.Sprint(i.Done, history.SagaSkip, history.NextSkip(byName, i.Done)), Outcome: o})
	}
	if i.Back {
		body, err := json.Marshal(&semel.Failure{Code: CodeOperator, Message: "an operator turned the saga back"})
		if err != nil {
			return nil, err
		}
		steps = append(steps, store.Step{Name: backStep, Outcome: store.Outcome{Body: body}})
	}
	return steps, roomFor(recorded, steps)
}

// canSkip refuses to skip what the saga is not stuck at, such as a name with a typing error.
// If the record does not say where the saga is stuck, because its process died, any name is
// taken.
func canSkip(s history.StuckSaga, step string, isUndo, back bool) error {
	switch {
	case isUndo && !s.Back && !back:
		return fmt.Errorf("the saga has not turned back, so that no compensation runs; skip the step, or turn the saga back")
	case isUndo && s.Undo != "" && step != s.Undo:
		return fmt.Errorf("the saga is stuck at %q, not at %q", s.Undo+undoPart, step+undoPart)
	case !isUndo && len(s.Steps) > 0 && !s.ErrorCut && !slices.Contains(s.Steps, step):
		return fmt.Errorf(`the saga is stuck at "%s", not at %q`, strings.Join(s.Steps, `" and "`), step)
	case !isUndo && len(s.Steps) == 0 && s.Undo != "":
		return fmt.Errorf("the saga is stuck at %q, not at %q", s.Undo+undoPart, step)
	}
	return nil
}

// backAlready refuses to turn back a saga that has turned back.
func backAlready(s history.StuckSaga) error {
	undo := "STEP" + undoPart
	if s.Undo != "" {
		undo = s.Undo + undoPart
	}
	if len(s.InDoubt) > 0 {
		return fmt.Errorf("the saga has turned back already; say whether %q happened: skip it if it did, and otherwise retry, and say that it did not happen", s.InDoubt[0])
	}
	return fmt.Errorf("the saga has turned back already; retry, so that the compensation is tried again, or skip %q if it was done by hand", undo)
}
