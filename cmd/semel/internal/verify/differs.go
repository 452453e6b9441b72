package verify

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/store"
)

// differs names the fields in which a record is not as wanted; empty: in none.
// The text shows no bodies, because they can be long.
func differs(want, got *store.Record) string {
	var b strings.Builder
	field := func(name string, same bool, w, g any) {
		if !same {
			fmt.Fprintf(&b, "; %s is %v, want %v", name, g, w)
		}
	}
	field("Key", want.Key == got.Key, fmt.Sprintf("%.80q", want.Key), fmt.Sprintf("%.80q", got.Key))
	field("State", want.State == got.State, want.State, got.State)
	field("Policy", want.Policy == got.Policy, want.Policy, got.Policy)
	field("Fence", want.Fence == got.Fence, want.Fence, got.Fence)
	field("Owner", want.Owner == got.Owner, fmt.Sprintf("%x", want.Owner[:4]), fmt.Sprintf("%x", got.Owner[:4]))
	field("Holder", want.Holder == got.Holder, want.Holder, got.Holder)
	field("Fingerprint", want.Fingerprint == got.Fingerprint, fmt.Sprintf("%.40q", want.Fingerprint), fmt.Sprintf("%.40q", got.Fingerprint))
	field("Attempt", want.Attempt == got.Attempt, want.Attempt, got.Attempt)
	field("LastError", want.LastError == got.LastError, fmt.Sprintf("%.80q", want.LastError), fmt.Sprintf("%.80q", got.LastError))
	field("Until", want.Until.Equal(got.Until), want.Until, got.Until)
	field("Created", want.Created.Equal(got.Created), want.Created, got.Created)
	field("Updated", want.Updated.Equal(got.Updated), want.Updated, got.Updated)
	field("Completed", want.Completed.Equal(got.Completed), want.Completed, got.Completed)
	field("Expires", want.Expires.Equal(got.Expires), want.Expires, got.Expires)
	field("Format", want.Format == got.Format, want.Format, got.Format)
	if w, g := want.Outcome, got.Outcome; !w.Equal(g) {
		field("the outcome's Code", w.Code == g.Code, w.Code, g.Code)
		field("its Codec", w.Codec == g.Codec, w.Codec, g.Codec)
		field("its Gone", w.Gone == g.Gone, w.Gone, g.Gone)
		field("its body", string(w.Body) == string(g.Body), size(w.Body), size(g.Body))
		field("its header", store.Outcome{Header: w.Header}.Equal(store.Outcome{Header: g.Header}), fmt.Sprintf("%.120q", w.Header), fmt.Sprintf("%.120q", g.Header))
	}
	return strings.TrimPrefix(b.String(), "; ")
}

// size is a body in a few words.
func size(b []byte) string { return fmt.Sprintf("%d bytes beginning with %.20q", len(b), b) }

// inserted compares a record with the record that a won claim makes.
func inserted(p *store.Proposal, got *store.Record) string {
	want := p.Insert(got.Updated, 0)
	want.Fence = got.Fence // the store chooses the fence
	if got.Fence == 0 {
		return "Fence is 0"
	}
	return differs(&want, got)
}

// replaced compares a record with the record that a won swap of old makes.
func replaced(p *store.Proposal, old, got *store.Record) string {
	if got.Fence <= old.Fence {
		return fmt.Sprintf("the fence did not grow: it is %d, and was %d", got.Fence, old.Fence)
	}
	want := p.Replace(old, got.Updated)
	want.Fence = got.Fence
	return differs(&want, got)
}

// settled compares a record with the record that a settlement of old makes.
func settled(s *store.Settlement, old, got *store.Record) string {
	want := s.Apply(*old, got.Updated)
	return differs(&want, got)
}
