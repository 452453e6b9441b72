package semel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

// Rule 12: without the secret a small payload could be guessed from its hash.
func TestSecrets_OtherKey_OtherHash(t *testing.T) {
	one, two := secret("a"), secret("a")
	two.Key = secret("b").Key
	keyed := func(s ...semel.Secret) *semel.Options { return &semel.Options{Secrets: s} }
	sums := map[string]bool{}
	for _, o := range []*semel.Options{keyed(), keyed(one), keyed(two)} {
		sums[fingerprintOf(t, o, semel.JSON("1234")).Sum] = true
	}
	if len(sums) != 3 {
		t.Errorf("without a secret and with two keys a payload has %d hashes, want 3", len(sums))
	}
}

// secret makes a secret whose key depends on its ID.
func secret(id string) semel.Secret {
	return semel.Secret{ID: id, Key: []byte(strings.Repeat(id, 16))}
}

// Rule 12: as long as the old secret is in the list, its records are compared. An
// unknown secret is an error, and neither a mismatch nor a run.
func TestSecrets_Rotated_OldRecordsAreCompared(t *testing.T) {
	st := memstore.New(nil)
	with := func(ids ...string) *semel.Guard {
		var ss []semel.Secret
		for _, id := range ids {
			ss = append(ss, secret(id))
		}
		return guard(t, st, &semel.Options{Secrets: ss})
	}
	_, err := with("a").Run(t.Context(), paying("k", semel.JSON(1)), answer("one"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		g    *semel.Guard
		n    int
		want error
	}{
		"rotated, the same payload":   {with("b", "a"), 1, nil},
		"rotated, another payload":    {with("b", "a"), 2, semel.ErrMismatch},
		"dropped too early":           {with("b"), 1, semel.ErrUnverifiable},
		"dropped, another payload":    {with("b"), 2, semel.ErrUnverifiable},
		"no secrets":                  {with(), 1, semel.ErrUnverifiable},
		"the same secret, mismatched": {with("a"), 2, semel.ErrMismatch},
	} {
		_, err := c.g.Run(t.Context(), paying("k", semel.JSON(c.n)), never(t))
		if !errors.Is(err, c.want) || c.want != semel.ErrMismatch && errors.Is(err, semel.ErrMismatch) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	_, err = with("b").Run(t.Context(), paying("k", semel.JSON(1)), never(t))
	for _, want := range []string{`with secret "a", which this process does not have`, "Options.Secrets", "--secret-file"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without the secret: %v; want %q", err, want)
		}
	}
	if r := record(t, with(), "k"); r.Fingerprint.KeyID != "a" || r.Fingerprint.Alg != "rfc8785/hmac-sha256" {
		t.Errorf("the record has the fingerprint %+v, want secret a and rfc8785/hmac-sha256", r.Fingerprint)
	}
}

func TestSecrets_Added_UnkeyedRecordsAreCompared(t *testing.T) {
	st := memstore.New(nil)
	_, err := guard(t, st, nil).Run(t.Context(), paying("k", semel.JSON(1)), answer("one"))
	if err != nil {
		t.Fatal(err)
	}
	g := guard(t, st, &semel.Options{Secrets: []semel.Secret{secret("a")}})
	res, err := g.Run(t.Context(), paying("k", semel.JSON(1)), never(t))
	wantBody(t, res, err, "one", true)
	_, err = g.Run(t.Context(), paying("k", semel.JSON(2)), never(t))
	wantErr(t, err, semel.ErrMismatch)
}

// Rule 12: the order of docs/how-to/rotate-secrets.md. At each step two processes may be one
// step apart, and each knows the calls of the other.
func TestSecrets_FirstOneTurnedOnInSteps_EachProcessComparesAll(t *testing.T) {
	steps := [][]semel.Secret{nil, {{}, secret("a")}, {secret("a")}}
	for i := range len(steps) - 1 {
		for _, order := range [][2]int{{i, i + 1}, {i + 1, i}} {
			st := memstore.New(nil)
			first, second := guard(t, st, &semel.Options{Secrets: steps[order[0]]}), guard(t, st, &semel.Options{Secrets: steps[order[1]]})
			if _, err := first.Run(t.Context(), paying("k", semel.JSON(1)), answer("one")); err != nil {
				t.Fatal(err)
			}
			res, err := second.Run(t.Context(), paying("k", semel.JSON(1)), never(t))
			wantBody(t, res, err, "one", true)
			_, err = second.Run(t.Context(), paying("k", semel.JSON(2)), never(t))
			wantErr(t, err, semel.ErrMismatch)
		}
	}
	if f := fingerprintOf(t, &semel.Options{Secrets: steps[1]}, semel.JSON(1)); f.KeyID != "" || f.Alg != "rfc8785/sha256" {
		t.Errorf("after the first step the hash is %+v, want one without a secret", f)
	}
	if _, err := semel.New(memstore.New(nil), &semel.Options{Secrets: []semel.Secret{secret("a"), {}}}); err == nil {
		t.Error("the zero Secret is accepted after another")
	}
}

// The command inspect and the console tell a request over HTTP by the name of its hash.
func TestSecrets_Digest_RecordKeepsItsName(t *testing.T) {
	f := fingerprintOf(t, &semel.Options{Secrets: []semel.Secret{secret("a")}}, semel.Digest("semelhttp/2", []byte("sum")))
	if want := "semelhttp/2/digest/hmac-sha256"; f.Alg != want || f.KeyID != "a" {
		t.Errorf("the record has the fingerprint %+v, want %s by secret a", f, want)
	}
}
