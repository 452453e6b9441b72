package history_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/store"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// A reconciler that did not decide does not change since when a call is in doubt.
func TestDoubtSince_Reconciled_IsTheFirstDoubt(t *testing.T) {
	now := noon.Add(time.Hour)
	past := func(holder string, state store.State, minute int) store.FormerOwner {
		return store.FormerOwner{Holder: holder, State: state, Next: store.Processing, Ended: noon.Add(time.Duration(minute) * time.Minute)}
	}
	type owners = []store.FormerOwner
	for name, c := range map[string]struct {
		record store.Record
		want   time.Time
	}{
		"not in doubt":              {store.Record{State: store.Released}, time.Time{}},
		"in doubt once":             {store.Record{State: store.Unknown, Holder: "a"}, now},
		"after an expired lease":    {store.Record{State: store.Unknown, Holder: "b", FormerOwners: owners{past("a", store.Processing, 1)}}, now},
		"reconciled twice":          {store.Record{State: store.Unknown, Holder: "b reconciling", FormerOwners: owners{past("a", store.Unknown, 1), past("b reconciling", store.Unknown, 2)}}, noon.Add(time.Minute)},
		"in doubt again":            {store.Record{State: store.Unknown, Holder: "c", FormerOwners: owners{past("a", store.Unknown, 1), past("b reconciling", store.Released, 2)}}, now},
		"the beginning is not kept": {store.Record{State: store.Unknown, Holder: "b reconciling", FormerOwners: owners{past("b reconciling", store.Unknown, 2)}}, noon.Add(2 * time.Minute)},
	} {
		if c.record.Updated = now; !history.DoubtSince(&c.record).Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, history.DoubtSince(&c.record), c.want)
		}
	}
}

func TestOf_EachOwner_InWords(t *testing.T) {
	owner := func(holder string, state, next store.State) store.FormerOwner {
		return store.FormerOwner{Holder: holder, Attempt: 2, State: state, Next: next, Ended: noon}
	}
	type owners = []store.FormerOwner
	for want, r := range map[string]store.Record{
		`["Attempt 2: completed"]`: {Attempt: 2, State: store.Completed},
		`["Attempt 2: the lease expired. When the process stopped is not known" "Attempt 3: in doubt"]`: {
			Attempt: 3, State: store.Unknown, FormerOwners: owners{owner("a", store.Processing, store.Processing)}},
		`["Attempt 2: the lease expired. When the process stopped is not known" "Released, because the lease had expired"]`: {
			Attempt: 2, State: store.Released, FormerOwners: owners{owner("a", store.Processing, store.Released)}},
		`["Attempt 2: released" "Failed, because no attempt was left"]`: {
			Attempt: 2, State: store.Failed, FormerOwners: owners{owner("a", store.Released, store.Failed)}},
		`["Attempt 2: released" "An attempt: released"]`: {State: store.Released, FormerOwners: owners{owner("a", store.Released, store.Processing)}},
		`["Attempt 2: in doubt" "An operator decided: it happened, by ann/9"]`: { // by a program of its own
			Holder: "ann/9", State: store.Completed, FormerOwners: owners{owner("a", store.Unknown, store.Completed)}},
		`["Attempt 2: failed" "An operator reopened it, by eve: a whole reason"]`: {
			Holder: "reopened by eve: a wh…", LastError: "reopened: eve: a whole reason", State: store.Released, FormerOwners: owners{owner("a", store.Failed, store.Released)}},
		`["An operator reopened it, by eve: why" "Attempt 1 after the reopening: completed"]`: { // the owner before is not kept
			Attempt: 1, State: store.Completed, FormerOwners: owners{owner("reopened by eve: why", store.Released, store.Processing)}},
		`["Attempt 2: in doubt" "The reconciler did not decide, by the reconciler of b" "The reconciler decided: it happened, by the reconciler of b"]`: {
			Holder: "b reconciling", State: store.Completed, FormerOwners: owners{owner("a", store.Unknown, store.Processing), owner("b reconciling", store.Unknown, store.Processing)}},
		`["Attempt 2: in doubt" "An operator decided: it did not happen, by eve: why" "Attempt 1 after the decision: completed"]`: {
			Attempt: 1, State: store.Completed, FormerOwners: owners{owner("a", store.Unknown, store.Released), owner("resolved by eve: why", store.Released, store.Processing)}},
		`["An operator decided: it failed, by eve: why; since when is not kept"]`: {Holder: "resolved by eve: why", State: store.Failed},
	} {
		before := slices.Clone(r.FormerOwners)
		var got []string
		for _, e := range history.Entries(&r) {
			text := e.What
			if e.By != "" {
				text += ", by " + e.By
			}
			if e.DoubtNotKept {
				text += "; since when is not kept"
			}
			got = append(got, text)
		}
		if fmt.Sprintf("%q", got) != want || !slices.Equal(before, r.FormerOwners) {
			t.Errorf("%+v:\ngot  %q\nwant %s", r, got, want)
		}
	}
}
