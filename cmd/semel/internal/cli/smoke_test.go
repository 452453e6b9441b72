//go:build unix

package cli

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// token makes a bearer token, signed by hand.
func token(key ed25519.PrivateKey, claims string) string {
	b64 := base64.RawURLEncoding.EncodeToString
	signed := b64([]byte(`{"alg":"EdDSA","kid":"1"}`)) + "." + b64([]byte(claims))
	return "Bearer " + signed + "." + b64(ed25519.Sign(key, []byte(signed)))
}

func TestProxy_JWT_TenantOfVerifiedToken(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, foreign, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","use":"sig","alg":"EdDSA","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	}))
	defer idp.Close()
	l := newBank(t)
	p := start(t, "--listen", "127.0.0.1:0", "--upstream", l.URL, "--store", "memory:", "--scope", "jwt:tenant", "--jwks", idp.URL, "--jwt-audience", "pay")
	claims := func(tenant string, exp time.Time) string {
		return fmt.Sprintf(`{"tenant":%q,"aud":"pay","exp":%d}`, tenant, exp.Unix())
	}
	hour := time.Now().Add(time.Hour)
	tr := wire(t)
	send := func(authorization string) reply {
		r, err := post(t.Context(), tr, p.Addr, "/pay", "k", "{}", "Authorization", authorization)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	ann, again, bob := send(token(private, claims("ann", hour))), send(token(private, claims("ann", hour.Add(1)))), send(token(private, claims("bob", hour)))
	if ann.status != 201 || again.body != ann.body || !again.replayed() || bob.status != 201 || bob.replayed() || bob.body == ann.body {
		t.Errorf("ann %+v, again %+v, bob %+v", ann, again, bob)
	}
	for name, authorization := range map[string]string{
		"another's key": token(foreign, claims("ann", hour)), "expired": token(private, claims("ann", time.Now().Add(-time.Hour))),
		"no tenant": token(private, fmt.Sprintf(`{"aud":"pay","exp":%d}`, hour.Unix())), "none": "",
		"alg none": "Bearer " + base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims("ann", hour))) + ".",
	} {
		if r := send(authorization); r.status != 401 || strings.Contains(r.body, "effect") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if n := l.of("k"); n != 2 {
		t.Errorf("%d effects", n)
	}
}

func TestProxy_SecretsRotated_OldRecordsCompare(t *testing.T) {
	t.Parallel()
	l := newBank(t)
	db := "sqlite:" + filepath.Join(t.TempDir(), "semel.db")
	const one, two = "one:00112233445566778899aabbccddeeff\n", "two:ff112233445566778899aabbccddeeff\n"
	for i, c := range []struct {
		secrets string
		status  int
	}{{one, 201}, {two + one, 201}, {two, 500}, {two + one, 201}, {"unkeyed\n" + one, 201}} {
		p := start(t, "--listen", "127.0.0.1:0", "--upstream", l.URL, "--store", db, "--scope", "single", "--secret-file", write(t, "secrets", c.secrets))
		r, err := post(t.Context(), wire(t), p.Addr, "/pay", "k", "{}")
		if err != nil || r.status != c.status || c.status == 500 && !strings.Contains(r.body, "payload_unverifiable") {
			t.Errorf("%d: %+v, %v", i, r, err)
		}
		p.kill()
	}
	if n := l.of("k"); n != 1 {
		t.Errorf("%d effects", n)
	}
}

func TestProxy_ConfigFile_RulesServedLoggedAsJSON(t *testing.T) {
	t.Parallel()
	l := newBank(t)
	conf := write(t, "semel.yaml", `
upstream: `+l.URL+`
scope: header:X-Account
store: "memory:"
listen: 127.0.0.1:0
rules:
  - match: POST /pay
    on-doubt: park
    operation: payments
`)
	p := spawn(t, "proxy", "--config", conf, "--json")
	var line struct{ Msg, Addr, Scope string }
	eventually(t, 3*time.Minute, "it listens", func() bool {
		for text := range strings.Lines(p.Log()) {
			if json.Unmarshal([]byte(text), &line) == nil && line.Msg == "listening" {
				return true
			}
		}
		return false
	})
	r, err := post(t.Context(), wire(t), line.Addr, "/pay", "k", "{}", "X-Account", "ann")
	if err != nil || r.status != 201 || line.Scope != "header:X-Account" {
		t.Errorf("%+v, %v, %+v", r, err, line)
	}
}

func TestProxy_LargeHeaders_Refused(t *testing.T) {
	t.Parallel()
	l := newBank(t)
	p := start(t, "--listen", "127.0.0.1:0", "--upstream", l.URL, "--store", "memory:", "--scope", "single")
	for size, want := range map[int]int{10 << 10: 201, 32 << 10: 431} {
		r, err := post(t.Context(), wire(t), p.Addr, "/pay", fmt.Sprint("k", size), "{}", "X-Big", strings.Repeat("x", size))
		if err != nil || r.status != want {
			t.Errorf("%d bytes: %+v, %v", size, r, err)
		}
	}
}
