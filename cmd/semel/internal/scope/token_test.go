package scope_test

import (
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/semel-go/semel/cmd/semel/internal/scope"
)

// tenant is what a finder makes of a request with the Authorization headers.
func tenant(f *scope.Finder, authorization ...string) (string, error) {
	r := httptest.NewRequest("POST", "/", nil)
	for _, v := range authorization {
		r.Header.Add("Authorization", v)
	}
	return f.Tenant(r)
}

func TestTenant_JWT_Verified(t *testing.T) {
	c := newClock()
	at := func(d time.Duration) int64 { return c.Now().Add(d).Unix() }
	keys := scope.NewKeySet(writeFile(t, jwks(t, "rsa", "ec", "ed")),
		&scope.KeySetOptions{Issuer: "https://id", Audience: "pay", Now: c.Now})
	f := finder(t, "jwt:sub", keys)
	good := func() map[string]any {
		return map[string]any{"sub": "ann", "iss": "https://id", "aud": []string{"other", "pay"}, "exp": at(time.Hour)}
	}
	with := func(name string, v any) map[string]any {
		m := good()
		if m[name] = v; v == nil {
			delete(m, name)
		}
		return m
	}
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"ann","exp":9999999999}`)) + "."
	signed := sign(t, "ec", good())
	head, rest, _ := strings.Cut(signed, ".")
	_, sig, _ := strings.Cut(rest, ".")
	forged := head + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"bob","iss":"https://id","aud":"pay","exp":9999999999}`)) + "." + sig
	for name, c := range map[string]struct{ token, want string }{
		"RS256":                    {sign(t, "rsa", good()), "ann"},
		"ES256":                    {signed, "ann"},
		"EdDSA":                    {sign(t, "ed", good()), "ann"},
		"a number":                 {sign(t, "ec", with("sub", 9007199254740993)), "9007199254740993"},
		"just expired":             {sign(t, "ec", with("exp", at(-20*time.Second))), "ann"},
		"a wrong key of that name": {sign(t, "other", good()), ""},
		"a key that is not there":  {sign(t, "hmac", good()), ""},
		"alg none":                 {none, ""},
		"changed claims":           {forged, ""},
		"expired":                  {sign(t, "ec", with("exp", at(-time.Minute))), ""},
		"no expiry":                {sign(t, "ec", with("exp", nil)), ""},
		"not yet valid":            {sign(t, "ec", with("nbf", at(time.Hour))), ""},
		"another issuer":           {sign(t, "ec", with("iss", "https://evil")), ""},
		"another audience":         {sign(t, "ec", with("aud", "other")), ""},
		"no audience":              {sign(t, "ec", with("aud", nil)), ""},
		"no claim":                 {sign(t, "ec", with("sub", nil)), ""},
		"an empty claim":           {sign(t, "ec", with("sub", "")), ""},
		"a claim that is a list":   {sign(t, "ec", with("sub", []string{"ann"})), ""},
		"a fraction":               {sign(t, "ec", with("sub", 1.5)), ""},
		"a bool":                   {sign(t, "ec", with("sub", true)), ""},
		"no token":                 {"xyz", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tenant(f, "Bearer "+c.token)
			if got != c.want || (c.want == "") != errors.Is(err, scope.ErrUnknown) {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), c.token) {
				t.Errorf("the error holds the token: %v", err)
			}
		})
	}
}

func TestTenant_JWT_ExactlyOneBearerToken(t *testing.T) {
	c := newClock()
	f := finder(t, "jwt:sub", scope.NewKeySet(writeFile(t, jwks(t, "ec")), &scope.KeySetOptions{Now: c.Now}))
	token := sign(t, "ec", map[string]any{"sub": "ann", "exp": c.Now().Add(time.Hour).Unix()})
	if got, err := tenant(f, "bearer "+token); got != "ann" {
		t.Errorf("one: got %q, %v", got, err)
	}
	for name, headers := range map[string][]string{
		"none": nil, "two": {"Bearer " + token, "Bearer " + token}, "basic": {"Basic YTpi"}, "no scheme": {token}, "empty": {"Bearer "},
	} {
		if got, err := tenant(f, headers...); got != "" || !errors.Is(err, scope.ErrUnknown) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestTenant_UnverifiedJWT_OnlyRead(t *testing.T) {
	f := finder(t, "jwt-unverified:tenant_id", nil)
	for _, key := range []string{"other", "hmac"} {
		if got, err := tenant(f, "Bearer "+sign(t, key, map[string]any{"tenant_id": "ann"})); got != "ann" || err != nil {
			t.Errorf("%s: got %q, %v", key, got, err)
		}
	}
	twice := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(`{"tenant_id":"ann","tenant_id":"bob"}`)) + ".AAAA"
	for name, token := range map[string]string{"no token": "a.b", "no claim": sign(t, "hmac", map[string]any{"sub": "ann"}), "a claim twice": twice} {
		if got, err := tenant(f, "Bearer "+token); got != "" || !errors.Is(err, scope.ErrUnknown) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

// A key is for one algorithm, where its issuer says so (RFC 8725, 3.1).
func TestTenant_JWT_OnlyKeysOwnAlgorithm(t *testing.T) {
	c := newClock()
	claims := map[string]any{"sub": "ann", "exp": c.Now().Add(time.Hour).Unix()}
	rsa := pairs()["rsa"]
	token := "Bearer " + signedAs(t, jose.PS256, rsa.id, rsa.private, claims)
	named := jwks(t, "rsa")
	open := []byte(strings.ReplaceAll(string(named), `"alg":"RS256",`, ""))
	for name, set := range map[string]struct {
		doc  []byte
		want string
	}{"RS256": {named, ""}, "any": {open, "ann"}} {
		f := finder(t, "jwt:sub", scope.NewKeySet(writeFile(t, set.doc), &scope.KeySetOptions{Now: c.Now}))
		if got, err := tenant(f, token); got != set.want || (set.want == "") != errors.Is(err, scope.ErrUnknown) {
			t.Errorf("a key for %s and a token by PS256: got %q, %v", name, got, err)
		}
	}
}

// A token that no public key can verify is refused before the set is asked for
// a key: else anybody could have it fetched, or a public key taken for a secret.
func TestTenant_JWT_NoPublicKeySignature_RefusedWithoutFetch(t *testing.T) {
	c := newClock()
	idp := newIssuer(t, jwks(t, "rsa"))
	f := finder(t, "jwt:sub", scope.NewKeySet(idp.URL, &scope.KeySetOptions{Now: c.Now}))
	claims := map[string]any{"sub": "ann", "exp": c.Now().Add(time.Hour).Unix()}
	secret, err := x509.MarshalPKIXPublicKey(pairs()["rsa"].public)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"a secret of its own": sign(t, "hmac", claims), "the public key as the secret": signedAs(t, jose.HS256, "r1", secret, claims),
	} {
		if got, err := tenant(f, "Bearer "+token); got != "" || !errors.Is(err, scope.ErrUnknown) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	if n := idp.fetches.Load(); n != 0 {
		t.Errorf("the set was fetched %d times", n)
	}
}
