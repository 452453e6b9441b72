// Package history says in words what happened to a record: how each of its former owners
// ended, and who decided about a call in doubt.
package history

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// The prefixes of Holder in a decision that the commands or the console have made.
const (
	ResolvedBy = "resolved by "
	ReopenedBy = "reopened by "
)

// Entry is one owner of a record: an attempt, a reconciler, an operator who decided, or a
// process that found an expired lease.
type Entry struct {
	// When is the time of the decision. For an attempt it is the last time that the record
	// has: the end of its lease, or the time of the change that ended it.
	When time.Time
	What string // such as "Attempt 1: in doubt"
	// Name names an attempt, such as "Attempt 1" or, because attempts are counted from 1
	// again then, "Attempt 1 after the reopening". Empty: it is no attempt, or its count was
	// given back.
	Name string
	// Decision is what somebody has decided, such as "it happened". Empty: nobody has.
	Decision string
	// By is who decided and, if it was an operator, for what reason.
	By string
	// DoubtNotKept says that the record no longer has the time at which the call came into
	// doubt.
	DoubtNotKept bool
	// Attempt says that the owner was an attempt of the call, and Operator that an
	// operator decided.
	Attempt, Operator bool
	Failed            bool
}

// Entries has an entry for each of the record's former owners, in their order, and one for its
// present owner.
func Entries(r *store.Record) []Entry {
	owners := slices.Concat(r.FormerOwners, []store.FormerOwner{{Holder: r.Holder, Attempt: r.Attempt, State: r.State, Ended: r.Updated}})
	entries := make([]Entry, len(owners))
	var before *store.FormerOwner // nil: there was none, or it is not kept
	after := ""
	for i := range owners {
		if protocol.IsSaga(r.Key) {
			entries[i] = sagaEntry(before, &owners[i], after)
		} else {
			entries[i] = entryOf(before, &owners[i], after)
		}
		switch e := &entries[i]; {
		case e.Decision == "reopened":
			after = " after the reopening"
		case e.Operator && owners[i].State == store.Released:
			after = " after the decision"
		}
		before = &owners[i]
	}
	if now := &entries[len(entries)-1]; now.Decision == "reopened" {
		if why, ok := strings.CutPrefix(r.LastError, protocol.Reopened); ok { // it has the whole reason
			now.By = why
		}
	}
	return entries
}

// DoubtSince is the time since which a call is in doubt, as far back as the record keeps it:
// a reconciler that did not decide does not change it. Zero: the call is not in doubt.
func DoubtSince(r *store.Record) time.Time {
	if r.State != store.Unknown {
		return time.Time{}
	}
	since, holder := r.Updated, r.Holder
	for i := len(r.FormerOwners) - 1; i >= 0 && strings.HasSuffix(holder, protocol.ReconcilerSuffix); i-- {
		o := &r.FormerOwners[i]
		if o.State == store.Unknown {
			since = o.Ended
		}
		holder = o.Holder
	}
	return since
}

// entryOf is the entry of o, which followed before. after is what its attempts are
// counted from.
func entryOf(before, o *store.FormerOwner, after string) Entry {
	e := Entry{When: o.Ended, Failed: o.State == store.Failed || o.State == store.Unknown}
	host, isReconciler := strings.CutSuffix(o.Holder, protocol.ReconcilerSuffix)
	switch {
	case isReconciler && (before == nil || before.State == store.Unknown):
		e.Decision, e.By = verdicts[o.State], "the reconciler of "+host
		e.What = "The reconciler decided: " + e.Decision
		if e.Decision == "" {
			e.What = undecided[o.State]
		}
	case isResolved(before, o):
		e.Decision, e.By, e.DoubtNotKept = verdicts[o.State], strings.TrimPrefix(o.Holder, ResolvedBy), before == nil
		e.What, e.Operator = "An operator decided: "+e.Decision, true
	case isReopened(before, o):
		e.Decision, e.By = "reopened", strings.TrimPrefix(o.Holder, ReopenedBy)
		e.What, e.Operator = "An operator reopened it", true
	case before != nil && before.Next == o.State && recovered[o.State] != "":
		e.What = recovered[o.State]
	default:
		e.Attempt = true
		e.What = "An attempt: " + attempts[o.State]
		if o.Attempt > 0 { // the count was not given back
			e.Name = fmt.Sprintf("Attempt %d%s", o.Attempt, after)
			e.What = e.Name + ": " + attempts[o.State]
		}
	}
	return e
}

// sagaEntry is entryOf for a saga. The steps of a saga keep the decisions of its operators.
func sagaEntry(before, o *store.FormerOwner, after string) Entry {
	why, ok := strings.CutPrefix(o.Holder, protocol.SagaOperator)
	if !ok || before != nil && (before.State != store.Unknown || before.Next != store.Processing) {
		return entryOf(before, o, after)
	}
	return Entry{When: o.Ended, What: "An operator decided", By: why, Operator: true, Failed: o.State == store.Unknown}
}

// isResolved reports whether an operator's verdict about a call in doubt made o.
func isResolved(before, o *store.FormerOwner) bool {
	if before == nil {
		return verdicts[o.State] != "" && strings.HasPrefix(o.Holder, ResolvedBy)
	}
	return before.State == store.Unknown && verdicts[before.Next] != ""
}

// isReopened reports whether an operator reopened a failed call by o.
func isReopened(before, o *store.FormerOwner) bool {
	if before == nil {
		return o.State == store.Released && strings.HasPrefix(o.Holder, ReopenedBy)
	}
	return before.State == store.Failed && before.Next == store.Released
}

// The words for the state that an owner has left.
var (
	verdicts  = map[store.State]string{store.Released: "it did not happen", store.Completed: "it happened", store.Failed: "it failed"}
	undecided = map[store.State]string{store.Processing: "The reconciler: " + expired, store.Unknown: "The reconciler did not decide"}
	recovered = map[store.State]string{ // by a sweep or another call
		store.Unknown: "Parked, because nobody knows whether the effect happened", store.Released: "Released, because the lease had expired",
		store.Failed: "Failed, because no attempt was left",
	}
	attempts = map[store.State]string{
		store.Started: "reserved", store.Processing: expired, store.Unknown: "in doubt", store.Released: "released", store.Completed: "completed", store.Failed: "failed",
	}
)

const expired = "the lease expired. When the process stopped is not known"
