package scope_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/scope"
)

func TestKeySet_KeyAdded_Found(t *testing.T) {
	c := newClock()
	idp := newIssuer(t, jwks(t, "ec"))
	f := finder(t, "jwt:sub", scope.NewKeySet(idp.URL, &scope.KeySetOptions{Now: c.Now}))
	claims := map[string]any{"sub": "ann", "exp": c.Now().Add(time.Hour).Unix()}
	if got, err := tenant(f, "Bearer "+sign(t, "ec", claims)); got != "ann" {
		t.Fatalf("got %q, %v", got, err)
	}
	both := jwks(t, "ec", "ed")
	idp.doc.Store(&both)
	fresh := "Bearer " + sign(t, "ed", claims)
	for range 5 { // too early for another fetch, however often it is asked
		if _, err := tenant(f, fresh); !errors.Is(err, scope.ErrUnknown) {
			t.Errorf("got %v", err)
		}
	}
	if n := idp.fetches.Load(); n != 1 {
		t.Errorf("fetched %d times", n)
	}
	c.advance(10 * time.Second)
	if got, err := tenant(f, fresh); got != "ann" {
		t.Errorf("after the pause: got %q, %v", got, err)
	}
}

// Some issuers reuse the id of a key, or give no ids. Then only a token that no key
// verifies shows that the set has changed.
func TestKeySet_KeyReplacedUnderSameID_Found(t *testing.T) {
	c := newClock()
	idp := newIssuer(t, jwks(t, "ec"))
	f := finder(t, "jwt:sub", scope.NewKeySet(idp.URL, &scope.KeySetOptions{Now: c.Now}))
	claims := map[string]any{"sub": "ann", "exp": c.Now().Add(time.Hour).Unix()}
	old, fresh := "Bearer "+sign(t, "ec", claims), "Bearer "+sign(t, "other", claims)
	if got, err := tenant(f, old); got != "ann" {
		t.Fatalf("got %q, %v", got, err)
	}
	doc := jwks(t, "other")
	idp.doc.Store(&doc)
	for range 5 { // too early for another fetch, however often it is asked
		if _, err := tenant(f, fresh); !errors.Is(err, scope.ErrUnknown) {
			t.Errorf("got %v", err)
		}
	}
	c.advance(10 * time.Second)
	if got, err := tenant(f, fresh); got != "ann" {
		t.Errorf("after the pause: got %q, %v", got, err)
	}
	if _, err := tenant(f, old); !errors.Is(err, scope.ErrUnknown) || idp.fetches.Load() != 2 {
		t.Errorf("the old one: %v, after %d fetches", err, idp.fetches.Load())
	}
	idp.doc.Store(nil)
	c.advance(10 * time.Second)
	if _, err := tenant(f, old); !errors.Is(err, scope.ErrUnknown) {
		t.Errorf("the old one, with the issuer down: %v", err)
	}
	if got, err := tenant(f, fresh); got != "ann" {
		t.Errorf("with the issuer down: got %q, %v", got, err)
	}
}

func TestKeySet_KeyWithdrawn_Refused(t *testing.T) {
	c := newClock()
	idp := newIssuer(t, jwks(t, "ec"))
	f := finder(t, "jwt:sub", scope.NewKeySet(idp.URL, &scope.KeySetOptions{Now: c.Now}))
	token := "Bearer " + sign(t, "ec", map[string]any{"sub": "ann", "exp": c.Now().Add(time.Hour).Unix()})
	if _, err := tenant(f, token); err != nil {
		t.Fatal(err)
	}
	other := jwks(t, "ed")
	idp.doc.Store(&other)
	c.advance(10 * time.Minute)
	until(t, "the key is forgotten", func() bool { // the refresh is in the background
		_, err := tenant(f, token)
		return errors.Is(err, scope.ErrUnknown)
	})
}

// After a time without tokens nobody has noticed that a key was withdrawn. The first token
// waits for the new set, and the next ones use it.
func TestKeySet_KeyWithdrawnWhileIdle_RefusedAtOnce(t *testing.T) {
	c := newClock()
	idp := newIssuer(t, jwks(t, "ec"))
	f := finder(t, "jwt:sub", scope.NewKeySet(idp.URL, &scope.KeySetOptions{Now: c.Now}))
	token := "Bearer " + sign(t, "ec", map[string]any{"sub": "ann", "exp": c.Now().Add(24 * time.Hour).Unix()})
	if _, err := tenant(f, token); err != nil {
		t.Fatal(err)
	}
	other := jwks(t, "ed")
	idp.doc.Store(&other)
	c.advance(8 * time.Hour)
	if got, err := tenant(f, token); !errors.Is(err, scope.ErrUnknown) {
		t.Errorf("got %q, %v", got, err)
	}
}

// A key set that cannot be read again is logged once for each reason, and a token of a key
// that may be in the newer set is no fault of the client.
func TestKeySet_IssuerDown_LoggedAndUnknownKeyUnavailable(t *testing.T) {
	var log bytes.Buffer
	c := newClock()
	idp := newIssuer(t, jwks(t, "ec"))
	f := finder(t, "jwt:sub", scope.NewKeySet(idp.URL, &scope.KeySetOptions{Now: c.Now, Log: slog.New(slog.NewTextHandler(&log, nil))}))
	claims := map[string]any{"sub": "ann", "exp": c.Now().Add(24 * time.Hour).Unix()}
	known, unknown := "Bearer "+sign(t, "ec", claims), "Bearer "+sign(t, "ed", claims)
	if _, err := tenant(f, known); err != nil {
		t.Fatal(err)
	}
	idp.doc.Store(nil)
	for range 3 {
		c.advance(time.Hour)
		if got, err := tenant(f, known); got != "ann" {
			t.Errorf("a known key: got %q, %v", got, err)
		}
		for range 2 { // the second one comes too early for another fetch
			if _, err := tenant(f, unknown); !errors.Is(err, scope.ErrUnavailable) || !errors.Is(err, scope.ErrOutdated) || errors.Is(err, scope.ErrUnknown) {
				t.Errorf("an unknown key: %v", err)
			}
		}
	}
	broken := []byte("{")
	idp.doc.Store(&broken)
	c.advance(time.Hour)
	_, _ = tenant(f, known)
	if got := strings.Count(log.String(), "level=ERROR"); got != 2 || !strings.Contains(log.String(), "500") || !strings.Contains(log.String(), "is no JSON Web Key Set") {
		t.Errorf("%d errors, want one of the status and one of the file:\n%s", got, &log)
	}
	both := jwks(t, "ec", "ed")
	idp.doc.Store(&both)
	c.advance(time.Hour)
	if got, err := tenant(f, unknown); got != "ann" || strings.Count(log.String(), "level=INFO") != 1 {
		t.Errorf("when it is there again: got %q, %v, logged:\n%s", got, err, &log)
	}
}

func TestKeySet_IssuerDown_KnownKeyStillVerifies(t *testing.T) {
	c := newClock()
	idp := newIssuer(t, jwks(t, "ec"))
	f := finder(t, "jwt:sub", scope.NewKeySet(idp.URL, &scope.KeySetOptions{Now: c.Now}))
	token := "Bearer " + sign(t, "ec", map[string]any{"sub": "ann", "exp": c.Now().Add(time.Hour).Unix()})
	if _, err := tenant(f, token); err != nil {
		t.Fatal(err)
	}
	idp.doc.Store(nil)
	c.advance(20 * time.Minute)
	if _, err := tenant(f, token); err != nil {
		t.Fatal(err)
	}
	until(t, "a second fetch", func() bool { return idp.fetches.Load() == 2 })
	if got, err := tenant(f, token); got != "ann" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestKeySet_NeverLoaded_Unavailable(t *testing.T) {
	c := newClock()
	idp := newIssuer(t, nil)
	f := finder(t, "jwt:sub", scope.NewKeySet(idp.URL, &scope.KeySetOptions{Now: c.Now}))
	token := "Bearer " + sign(t, "ec", map[string]any{"sub": "ann", "exp": c.Now().Add(time.Hour).Unix()})
	for range 2 {
		if _, err := tenant(f, token); !errors.Is(err, scope.ErrUnavailable) || errors.Is(err, scope.ErrUnknown) {
			t.Errorf("got %v", err)
		}
		if err := f.Ready(t.Context()); !errors.Is(err, scope.ErrUnavailable) {
			t.Errorf("ready: %v", err)
		}
	}
	doc := jwks(t, "ec")
	idp.doc.Store(&doc)
	c.advance(10 * time.Second)
	if err := f.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
	if got, err := tenant(f, token); got != "ann" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestParseSet_NoPublicKey_Refused(t *testing.T) {
	for name, doc := range map[string]string{
		"no JSON": "keys", "empty": `{"keys":[]}`, "a shared secret": `{"keys":[{"kty":"oct","k":"c2VjcmV0c2VjcmV0c2VjcmV0","kid":"h1"}]}`,
		"for encryption":  fmt.Sprintf(`{"keys":[%s]}`, `{"kty":"OKP","crv":"Ed25519","use":"enc","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`),
		"an unknown kind": `{"keys":[{"kty":"XYZ"}]}`,
	} {
		if err := scope.NewKeySet(writeFile(t, []byte(doc)), nil).Load(t.Context()); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if err := scope.NewKeySet("no/such/file", nil).Load(t.Context()); err == nil {
		t.Error("a file that is not there is taken")
	}
}

func TestParseSet_UnknownKeyType_OthersKept(t *testing.T) {
	c := newClock()
	doc := string(jwks(t, "ec"))
	doc = `{"keys":[{"kty":"XYZ"},` + doc[len(`{"keys":[`):]
	keys := scope.NewKeySet(writeFile(t, []byte(doc)), &scope.KeySetOptions{Now: c.Now})
	token := sign(t, "ec", map[string]any{"sub": "ann", "exp": c.Now().Add(time.Hour).Unix()})
	if got, err := tenant(finder(t, "jwt:sub", keys), "Bearer "+token); got != "ann" {
		t.Errorf("got %q, %v", got, err)
	}
}

// until polls for an event.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for tick, end := time.NewTicker(5*time.Millisecond), time.Now().Add(time.Minute); !f(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
