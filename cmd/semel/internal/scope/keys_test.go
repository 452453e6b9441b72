package scope_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// pair is a signing key and its public half.
type pair struct {
	id      string
	alg     jose.SignatureAlgorithm
	private any
	public  any
}

// pairs are one key of each kind, made once.
var pairs = sync.OnceValue(func() map[string]pair {
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return map[string]pair{
		"rsa":   {"r1", jose.RS256, r, &r.PublicKey},
		"ec":    {"e1", jose.ES256, e, &e.PublicKey},
		"ed":    {"d1", jose.EdDSA, priv, pub},
		"other": {"e1", jose.ES256, other, &other.PublicKey}, // names ec's key
		"hmac":  {"h1", jose.HS256, []byte("0123456789abcdef0123456789abcdef"), nil},
	}
})

// jwks is a set of the public halves, and an RSA key for encryption only.
func jwks(t testing.TB, names ...string) []byte {
	t.Helper()
	var set jose.JSONWebKeySet
	for _, name := range names {
		p := pairs()[name]
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: p.public, KeyID: p.id, Use: "sig", Algorithm: string(p.alg)})
	}
	doc, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// sign makes a token of the claims.
func sign(t testing.TB, key string, claims map[string]any) string {
	t.Helper()
	p := pairs()[key]
	return signedAs(t, p.alg, p.id, p.private, claims)
}

// signedAs is sign by another algorithm than the key's own.
func signedAs(t testing.TB, alg jose.SignatureAlgorithm, id string, key any, claims map[string]any) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", id))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(s).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// issuer serves a key set that can change or fail.
type issuer struct {
	*httptest.Server
	doc     atomic.Pointer[[]byte] // nil: 500
	fetches atomic.Int64
}

func newIssuer(t *testing.T, doc []byte) *issuer {
	i := &issuer{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.fetches.Add(1)
		doc := i.doc.Load()
		if doc == nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(*doc)
	}))
	t.Cleanup(i.Close)
	if doc != nil {
		i.doc.Store(&doc)
	}
	return i
}

// clock is a settable clock.
type clock struct{ at atomic.Int64 }

func (c *clock) Now() time.Time          { return time.Unix(c.at.Load(), 0) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d / time.Second)) }

func newClock() *clock {
	c := &clock{}
	c.at.Store(1_800_000_000)
	return c
}

func writeFile(t *testing.T, doc []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(path, doc, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
