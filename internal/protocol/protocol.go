// Package protocol has the names, texts and encodings that packages semel, saga and sweep
// write into records, and by which they recognize there what another one has written.
package protocol

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/store"
)

// ReconcilerSuffix is the suffix of Holder in a claim that a reconciler has.
const ReconcilerSuffix = " reconciling"

// IsReconcilerClaim reports whether the claim of r is, or was, a reconciler's.
func IsReconcilerClaim(r *store.Record) bool { return strings.HasSuffix(r.Holder, ReconcilerSuffix) }

// reconcilerText comes before the error of the last reconciler.
const reconcilerText = "; the reconciler: "

// RerunSuffix is the suffix of the operation of a rerun's second key. No step can have
// this operation, because the name of a step is not empty.
const RerunSuffix = "##rerun"

// SagaSuffix is the suffix of the operation of a saga. No step can have this operation, because
// the name of a step has no '#'.
const SagaSuffix = "##saga"

// IsSaga reports whether a key is that of a saga.
func IsSaga(k store.Key) bool { return strings.HasSuffix(k.Operation, SagaSuffix) }

// SagaReserveBytes is the part of store.MaxStepBytes that inputs, events and results of a
// saga's steps leave for its compensations and for operators' decisions.
const SagaReserveBytes = 128 << 10

// UnfinishedSagaRetention is how long a saga is kept that has not ended: much longer than
// anything waits, and short enough to be a time.
const UnfinishedSagaRetention = 100 * 365 * 24 * time.Hour

// KeepReleased is how long a released record is kept. A saga that has not ended does not
// expire, however long its workers are away.
func KeepReleased(k store.Key, retention time.Duration) time.Duration {
	if IsSaga(k) {
		return UnfinishedSagaRetention
	}
	return retention
}

// FailureCodec names the encoding of a kept failure.
const FailureCodec = "semel/failure"

// CodeExhausted is the code of the failure of a key without attempts left.
const CodeExhausted = "attempts_exhausted"

// UndecidedText is the LastError of a parked record after a reconciler did not decide:
// the first cause of the doubt, and why the reconciler did not decide.
func UndecidedText(r *store.Record, why string) string {
	cause, _, _ := strings.Cut(r.LastError, reconcilerText)
	return cause + reconcilerText + why
}

// SagaOperator is the prefix of Holder while an operator decides about a saga.
const SagaOperator = "operator: "

// The last errors of records about which somebody has decided.
const (
	Reopened           = "reopened: " // the reason follows
	ReconciledNoEffect = "reconciled: it did not happen"
	ResolvedNoEffect   = "an operator decided: it did not happen"
)

// IsDecision reports whether the last error of a record is no error, but tells that an
// operator or a reconciler has let the call run again. The error of a handler may begin with
// the same words, so the owner that has left the text counts, too.
func IsDecision(r *store.Record) bool {
	owners := r.FormerOwners
	if r.State != store.Started && r.State != store.Processing { // these have the text of the owner before
		owners = slices.Concat(owners, []store.FormerOwner{{Holder: r.Holder, State: r.State}})
	}
	n := len(owners)
	decided := n > 0 && owners[n-1].State == store.Released
	switch text := r.LastError; {
	case text == ReconciledNoEffect, text == ResolvedNoEffect:
		return true
	case strings.HasPrefix(text, Reopened):
		return decided && n > 1 && owners[n-2].State == store.Failed && owners[n-2].Next == store.Released
	case strings.HasPrefix(text, SagaOperator):
		return decided && IsSaga(r.Key) && strings.HasPrefix(owners[n-1].Holder, SagaOperator)
	}
	return false
}

// DecisionInterrupted reports whether an operator's claim of the saga expired before the
// decision was recorded, and the saga has not been stuck since. Such a saga must not go on
// by itself. Only the state Unknown ends this condition: a Released in the history can be a
// sweep's, after a run that took over and died.
func DecisionInterrupted(k store.Key, owners []store.FormerOwner) bool {
	if !IsSaga(k) {
		return false
	}
	for _, o := range slices.Backward(owners) {
		operator := strings.HasPrefix(o.Holder, SagaOperator)
		switch {
		case operator && o.State == store.Processing:
			return true
		case o.State == store.Unknown:
			return false
		}
	}
	return false
}

// ExpiredLeaseText describes a claim whose lease expired.
func ExpiredLeaseText(r *store.Record) string {
	if IsSaga(r.Key) && strings.HasPrefix(r.Holder, SagaOperator) {
		return r.LastError // why the saga is stuck
	}
	if IsReconcilerClaim(r) {
		return UndecidedText(r, strings.TrimSuffix(r.Holder, ReconcilerSuffix)+" died, froze or lost its connection")
	}
	return fmt.Sprintf("the lease of attempt %d expired: %s died, froze or lost its connection", r.Attempt, r.Holder)
}

// LastAttemptText describes how the last attempt ended. While a record is processing its
// LastError still describes the attempt before.
func LastAttemptText(r *store.Record) string {
	if r.State == store.Processing {
		return ExpiredLeaseText(r)
	}
	return r.LastError
}

// ExhaustedText describes a record without attempts left.
func ExhaustedText(attempts int, last string) string {
	return fmt.Sprintf("all %d attempts failed; the last: %s", attempts, last)
}

// Failure is the kept form of a semel.Failure.
type Failure struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Data    []byte `json:"data,omitempty"`
}

// FailureOutcome encodes a failure.
func FailureOutcome(f Failure) (store.Outcome, error) {
	body, err := json.Marshal(f)
	return store.Outcome{Body: body, Codec: FailureCodec}, err
}

// FailureCode is the code of a kept failure; empty if it has none or cannot be read.
func FailureCode(o *store.Outcome) string {
	if o.Gone {
		return "failure_not_kept"
	}
	var f Failure
	if o.Codec != FailureCodec || json.Unmarshal(o.Body, &f) != nil {
		return ""
	}
	return f.Code
}

// ReopenRefusal is the reason why a failed call with these recorded steps must not run
// again; empty if it may. A handler that fails for good may have undone its steps before. If it has used
// up its attempts, it goes on after its steps. The code of used-up attempts may also be that of
// a step, which the handler has passed on.
func ReopenRefusal(r *store.Record, steps []store.Step) string {
	usedUp := FailureCode(&r.Outcome) == CodeExhausted && !slices.ContainsFunc(steps, func(s store.Step) bool {
		return s.Failed && FailureCode(&s.Outcome) == CodeExhausted
	})
	if len(steps) == 0 || usedUp {
		return ""
	}
	const most = 5
	var names []string
	for i := range steps[:min(len(steps), most)] {
		names = append(names, steps[i].Name)
	}
	if n := len(steps) - most; n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	return "has recorded steps (" + strings.Join(names, ", ") + "), which would not run again, even if the handler has undone them; undo in the other systems what is left of them, and make a new call with another key"
}

// NewOwner makes the owner of a new claim. An owner has to be unique; the
// runtime's generator (ChaCha8 with a random seed) costs no system call.
func NewOwner() (o store.Owner) {
	binary.LittleEndian.PutUint64(o[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(o[8:], rand.Uint64())
	return o
}
