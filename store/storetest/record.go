package storetest

import (
	"strings"

	"github.com/semel-go/semel/store"
)

var recordChecks = []check{
	{"all fields come back from a claim", recordClaim},
	{"all fields come back from a swap", recordSwap},
}

// full proposes something in every field.
func full(k store.Key, s store.State) store.Proposal {
	p := proposal(k, s)
	p.Policy, p.Attempt, p.Holder = store.Park, 1<<31-1, "Höst-7 / pid 4711 / "+strings.Repeat("h", 200)
	p.Fingerprint = store.Fingerprint{Alg: "hmac-sha256", KeyID: "2026-11 ü", Sum: "\x00\x01\x80\xfe\xff'\"\\\n" + strings.Repeat("\xaa", 23)}
	p.Error = "first line\nsecond line: \"quoted\" \\ 'ünïcode' 日本語 " + strings.Repeat("e", 2000)
	return p
}

func recordClaim(b *bed) {
	for _, s := range []store.State{store.Started, store.Processing} {
		p := full(key(s.String()), s)
		r := b.claim(p).Record
		if d := inserted(&p, r); d != "" {
			b.Errorf("claimed as %v: %s", s, d)
		}
		b.unchanged(r)

		bare := store.Proposal{Key: key("bare " + s.String()), State: s, Owner: newOwner(), Lease: long}
		r = b.claim(bare).Record
		if d := inserted(&bare, r); d != "" {
			b.Errorf("claimed as %v with nothing but what is needed: %s", s, d)
		}
		b.unchanged(r)
	}
}

func recordSwap(b *bed) {
	for _, from := range states {
		for _, to := range states {
			old := b.put(key(from.String()+" to "+to.String()), from, long)
			p := full(old.Key, to)
			b.tick()
			r := b.swap(old.Seen(), p).Record
			if d := diff(p.Replace(&old, r.Updated), r); d != "" {
				b.Errorf("swapped from %v to %v: %s", from, to, d)
			}
			b.unchanged(r)
		}
	}
}
