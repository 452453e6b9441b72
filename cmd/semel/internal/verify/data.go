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
