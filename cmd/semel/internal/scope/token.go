package scope

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// signatures are the accepted algorithms: public keys only. A token without a
// signature, or with a shared secret, is refused.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// anySignature is for tokens that a gateway has verified.
var anySignature = append([]jose.SignatureAlgorithm{jose.HS256, jose.HS384, jose.HS512}, signatures...)

// leeway allows for clocks that differ.
const leeway = 30 * time.Second

// claims returns the claims of a token. It verifies the token if the rule says so.
func (f *Finder) claims(ctx context.Context, token string) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if f.rule.kind == unverified {
		t, err := jwt.ParseSigned(token, anySignature)
		if err != nil {
			return nil, fmt.Errorf("%w: the token cannot be read", ErrUnknown)
		}
		if err := t.UnsafeClaimsWithoutVerification(&all); err != nil {
			return nil, fmt.Errorf("%w: the token's claims cannot be read", ErrUnknown)
		}
		return all, nil
	}
	t, err := jwt.ParseSigned(token, signatures)
	if err != nil || len(t.Headers) != 1 {
		return nil, fmt.Errorf("%w: the token cannot be read, or is not signed with a public key", ErrUnknown)
	}
	keys, err := f.keys.find(ctx, t.Headers[0].KeyID)
	if err != nil {
		return nil, err
	}
	for len(keys) > 0 {
		var known registered
		for i := range keys {
			k := &keys[i]
			if k.Algorithm != "" && k.Algorithm != t.Headers[0].Algorithm {
				continue
			}
			if err = t.Claims(k.Key, &known, &all); err == nil {
				return all, f.keys.current(&known)
			}
		}
		if keys, err = f.keys.newer(ctx, t.Headers[0].KeyID); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: no key of the set verifies the token", ErrUnknown)
}

// registered are the claims that limit a token in time and to an audience. The
// subject is not among them, because it may be a number.
type registered struct {
	Issuer    string           `json:"iss"`
	Audience  jwt.Audience     `json:"aud"`
	Expiry    *jwt.NumericDate `json:"exp"`
	NotBefore *jwt.NumericDate `json:"nbf"`
	IssuedAt  *jwt.NumericDate `json:"iat"`
}

// current checks the expiry, the issuer and the audience of a token.
func (s *KeySet) current(r *registered) error {
	c := jwt.Claims{Issuer: r.Issuer, Audience: r.Audience, Expiry: r.Expiry, NotBefore: r.NotBefore, IssuedAt: r.IssuedAt}
	if c.Expiry == nil {
		return fmt.Errorf("%w: the token has no expiry", ErrUnknown)
	}
	want := jwt.Expected{Issuer: s.opt.Issuer, Time: s.opt.Now()}
	if s.opt.Audience != "" {
		want.AnyAudience = jwt.Audience{s.opt.Audience}
	}
	if err := c.ValidateWithLeeway(want, leeway); err != nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return nil
}

// text returns a claim that is a string or a whole number. A number and the string of its
// digits are the same tenant, because an issuer may change from one to the other.
func text(claims map[string]json.RawMessage, name string) (string, error) {
	raw, ok := claims[name]
	if !ok {
		return "", fmt.Errorf("%w: the token has no claim %q", ErrUnknown, name)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err == nil {
		// The decoder replaces what is no Unicode text, so that different texts would be one tenant.
		if strings.ContainsRune(s, utf8.RuneError) {
			return "", fmt.Errorf("%w: the token's claim %q is not valid Unicode, or has the character U+FFFD, which stands for such text", ErrUnknown, name)
		}
		return s, nil
	}
	var n int64
	if err := json.Unmarshal(raw, &n); err == nil && string(raw) != "null" {
		return fmt.Sprint(n), nil
	}
	return "", fmt.Errorf("%w: the token's claim %q is neither text nor a whole number", ErrUnknown, name)
}
