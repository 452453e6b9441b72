package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/semel-go/semel/store"
)

var dataCheck = check{
	name:  "data",
	claim: "What is written comes back byte for byte on another connection: bodies of any size, header lines in their order, binary text.",
	run: func(ctx context.Context, p *probe) error {
		rng := p.random()
		for i, o := range outcomes(rng, p.o.Body) {
			if err := p.roundTrip(ctx, i, o, rng); err != nil {
				return err
			}
		}
		return nil
	},
}

// outcomes are what a store may be asked to keep.
func outcomes(rng *rand.Rand, largest int) []store.Outcome {
	var os []store.Outcome
	for size := 1; size < largest; size *= 4 {
		os = append(os, store.Outcome{Code: 200, Body: noise(rng, size)})
	}
	os = append(os, store.Outcome{Code: 200, Body: noise(rng, largest)})
	for _, body := range []string{"", "\x00", "a\x00b", "\x00\x00", "\xff\xfe\x80", "\r\n", " x ", `{"a":"\u0000"}`, "é̀😀", "NULL", "'; --"} {
		os = append(os, store.Outcome{Code: 201, Body: []byte(body), Codec: "json"})
	}
	h := func(pairs ...string) store.Outcome {
		o := store.Outcome{Code: 202, Body: []byte("x")}
		for i := 0; i+1 < len(pairs); i += 2 {
			o.Header = append(o.Header, store.Header{Name: pairs[i], Value: pairs[i+1]})
		}
		return o
	}
	os = append(os,
		h("B", "1", "A", "2", "B", "0"), h("A", "", "A", ""), h("x-lower", "1", "X-Lower", "2"),
		h("X-Latin", "caf\xe9", "X-Spaces", "  two  ", "X-Comma", `a, "b", c`), h("X-Long", strings.Repeat("v", 8<<10)),
		store.Outcome{Code: 599, Gone: true}, store.Outcome{Code: 0}, store.Outcome{Gone: true, Header: []store.Header{{Name: "Etag", Value: `"1"`}}},
	)
	many := store.Outcome{Code: 200}
	for i := range 100 {
		many.Header = append(many.Header, store.Header{Name: fmt.Sprint("X-", rng.IntN(10)), Value: fmt.Sprint(i)})
	}
	return append(os, many)
}

// noise is binary, and does not compress.
func noise(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// texts are for people, in a record's other fields.
var texts = []string{"", "plain", "two\nlines\tand a tab", "quotes ' \" ` \\", "日本語 é 😀", "%s %_ $1 ?", strings.Repeat("long ", 100)}

// roundTrip writes a claim with all its fields, and an outcome, and reads both
// on another connection.
func (p *probe) roundTrip(ctx context.Context, i int, o store.Outcome, rng *rand.Rand) error {
	c := p.proposal(p.key("k", i), store.Processing)
	c.Holder, c.Attempt, c.Policy = "holder "+texts[i%len(texts)], i, store.Policy(i%2)
	c.Fingerprint = store.Fingerprint{Alg: "hmac-sha256", KeyID: fmt.Sprint("key ", i), Sum: string(noise(rng, 32))}
	if _, err := p.claimed(ctx, i, c); err != nil {
		return err
	}
	f, err := p.store(i+1).Get(ctx, c.Key)
	if err != nil {
		return p.vanished(c.Key, err)
	}
	p.tried(1)
	p.expect(c.Key.Value+": a claim, read on another connection", inserted(&c, &f.Record))
	r := f.Record

	s := store.Settlement{State: store.Completed, Attempt: i, Outcome: o, Keep: long, Error: texts[i%len(texts)]}
	if i%3 == 2 {
		s.State = store.Failed
	}
	switch refused, err := lost(p.store(i).Settle(ctx, r.Lease(), s)); {
	case errors.Is(err, store.ErrTooLarge):
		p.warn("an outcome of %d bytes is too large for the store: a Guard leaves a tombstone in its place, and duplicates are told that it is done but not kept", len(o.Body))
		return nil
	case err != nil:
		return err
	case !p.won(c.Key, "the owner's settlement", !refused):
		return nil
	}
	if f, err = p.store(i+1).Get(ctx, c.Key); err != nil {
		return p.vanished(c.Key, err)
	}
	if !p.expect(c.Key.Value+": an outcome, read on another connection", settled(&s, &r, &f.Record)) {
		return nil
	}
	dup, err := p.store(i+2).Claim(ctx, p.proposal(c.Key, store.Processing))
	if err != nil {
		return err
	}
	p.tried(1)
	p.expect(c.Key.Value+": an outcome, as a duplicate gets it", differs(&f.Record, &dup.Record))
	return nil
}

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
