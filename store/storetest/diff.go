package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel/store"
)

// same reports whether two records agree in all that they hold. A time in
// another zone is another: == is meant.
func same(a, b *store.Record) bool {
	return a.Key == b.Key && a.State == b.State && a.Policy == b.Policy && a.Fence == b.Fence && a.Owner == b.Owner &&
		a.Holder == b.Holder && a.Fingerprint == b.Fingerprint && a.Attempt == b.Attempt && a.LastError == b.LastError &&
		a.Until == b.Until && a.Created == b.Created && a.Updated == b.Updated && a.Completed == b.Completed &&
		a.Expires == b.Expires && a.Format == b.Format && a.Outcome.Equal(b.Outcome) &&
		slices.Equal(a.FormerOwners, b.FormerOwners)
}

// diff names the fields in which two records differ; empty: in none. Times
// are compared with ==, for records hold only those that store.Time returns.
func diff(want, got store.Record) string {
	if same(&want, &got) {
		return ""
	}
	var b strings.Builder
	field := func(name string, differs bool, w, g any) {
		if differs {
			fmt.Fprintf(&b, "%s is %v, want %v; ", name, g, w)
		}
	}
	field("Key", want.Key != got.Key, fmt.Sprintf("%+q", want.Key), fmt.Sprintf("%+q", got.Key))
	field("State", want.State != got.State, want.State, got.State)
	field("Policy", want.Policy != got.Policy, want.Policy, got.Policy)
	field("Fence", want.Fence != got.Fence, want.Fence, got.Fence)
	field("Owner", want.Owner != got.Owner, want.Owner, got.Owner)
	field("Holder", want.Holder != got.Holder, want.Holder, got.Holder)
	field("Fingerprint", want.Fingerprint != got.Fingerprint, fmt.Sprintf("%+q", want.Fingerprint), fmt.Sprintf("%+q", got.Fingerprint))
	field("Attempt", want.Attempt != got.Attempt, want.Attempt, got.Attempt)
	field("Until", want.Until != got.Until, want.Until, got.Until)
	field("Outcome", !want.Outcome.Equal(got.Outcome), brief(want.Outcome), brief(got.Outcome))
	field("FormerOwners", !slices.Equal(want.FormerOwners, got.FormerOwners), want.FormerOwners, got.FormerOwners)
	field("LastError", want.LastError != got.LastError, want.LastError, got.LastError)
	field("Created", want.Created != got.Created, want.Created, got.Created)
	field("Updated", want.Updated != got.Updated, want.Updated, got.Updated)
	field("Completed", want.Completed != got.Completed, want.Completed, got.Completed)
	field("Expires", want.Expires != got.Expires, want.Expires, got.Expires)
	field("Format", want.Format != got.Format, want.Format, got.Format)
	return strings.TrimSuffix(b.String(), "; ")
}

// brief prints an outcome without a long body.
func brief(o store.Outcome) string {
	cut := o.Body[:min(len(o.Body), 40)]
	return fmt.Sprintf("{%d %q %q (%d bytes) %q gone=%v}", o.Code, o.Header, cut, len(o.Body), o.Codec, o.Gone)
}
