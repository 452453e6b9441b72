package scope_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/scope"
)

// slowIssuer serves a key set, each time when it is let.
type slowIssuer struct {
	*httptest.Server
	doc atomic.Pointer[[]byte]
	in  chan struct{} // somebody asks
	let chan struct{}
}

func newSlowIssuer(t *testing.T, doc []byte) *slowIssuer {
	i := &slowIssuer{in: make(chan struct{}, 8), let: make(chan struct{}, 8)}
	i.doc.Store(&doc)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.in <- struct{}{}
		select {
		case <-i.let:
			_, _ = w.Write(*i.doc.Load())
		case <-r.Context().Done(): // nobody waits any more
		}
	}))
	t.Cleanup(i.Close)
	return i
}

// tenantIn is what a finder makes of a request that is given up with ctx.
func tenantIn(ctx context.Context, f *scope.Finder, authorization string) (string, error) {
	r := httptest.NewRequestWithContext(ctx, "POST", "/", nil)
	r.Header.Set("Authorization", authorization)
	return f.Tenant(r)
}

// The set is fetched for all, at most once in a while. A client that hangs up
// must not have used up that time for the others.
func TestKeySet_ClientHangsUp_FetchContinues(t *testing.T) {
	c := newClock()
	idp := newSlowIssuer(t, jwks(t, "ec"))
	f := finder(t, "jwt:sub", scope.NewKeySet(idp.URL, &scope.KeySetOptions{Now: c.Now, Timeout: time.Minute}))
	token := "Bearer " + sign(t, "ec", map[string]any{"sub": "ann", "exp": c.Now().Add(time.Hour).Unix()})
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = tenantIn(ctx, f, token) // nobody is there for the answer
	}()
	<-idp.in
	hangUp()
	idp.let <- struct{}{}
	<-gone
	if got, err := tenant(f, token); got != "ann" {
		t.Errorf("the next one: got %q, %v", got, err)
	}
}

// A slow issuer must not hold up requests: each one that waits takes a place of all tenants.
func TestKeySet_SlowFetch_OtherRequestsDoNotWait(t *testing.T) {
	c := newClock()
	idp := newSlowIssuer(t, jwks(t, "ec"))
	f := finder(t, "jwt:sub", scope.NewKeySet(idp.URL, &scope.KeySetOptions{Now: c.Now, Timeout: time.Minute}))
	claims := map[string]any{"sub": "ann", "exp": c.Now().Add(time.Hour).Unix()}
	known, unknown, forged := "Bearer "+sign(t, "ec", claims), "Bearer "+sign(t, "ed", claims), "Bearer "+sign(t, "other", claims)
	idp.let <- struct{}{}
	if got, err := tenant(f, known); got != "ann" {
		t.Fatalf("got %q, %v", got, err)
	}
	<-idp.in
	c.advance(10 * time.Second)
	first := make(chan error, 1)
	go func() {
		_, err := tenant(f, unknown)
		first <- err
	}()
	<-idp.in // the first one fetches
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, token := range []string{unknown, forged} {
			if _, err := tenant(f, token); !errors.Is(err, scope.ErrUnavailable) || !errors.Is(err, scope.ErrFetching) {
				t.Errorf("during the fetch: %v, want %v", err, scope.ErrUnavailable)
			}
		}
		if got, err := tenant(f, known); got != "ann" {
			t.Errorf("a known key during the fetch: got %q, %v", got, err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("requests wait for the fetch of another")
	}
	idp.let <- struct{}{}
	if err := <-first; !errors.Is(err, scope.ErrUnknown) {
		t.Errorf("the first one: %v, want %v", err, scope.ErrUnknown)
	}
	<-done
}

// So it is with a refresh that a request has begun in the background: that
// request is long over.
func TestKeySet_Refresh_OutlivesRequest(t *testing.T) {
	c := newClock()
	idp := newSlowIssuer(t, jwks(t, "ec"))
	f := finder(t, "jwt:sub", scope.NewKeySet(idp.URL, &scope.KeySetOptions{Now: c.Now, Timeout: time.Minute}))
	token := "Bearer " + sign(t, "ec", map[string]any{"sub": "ann", "exp": c.Now().Add(time.Hour).Unix()})
	idp.let <- struct{}{}
	if got, err := tenant(f, token); got != "ann" {
		t.Fatalf("got %q, %v", got, err)
	}
	<-idp.in
	without := jwks(t, "ed")
	idp.doc.Store(&without)
	c.advance(10 * time.Minute)
	ctx, over := context.WithCancel(t.Context())
	if got, err := tenantIn(ctx, f, token); got != "ann" {
		t.Fatalf("with what there was: got %q, %v", got, err)
	}
	<-idp.in
	over()
	idp.let <- struct{}{}
	until(t, "the key is forgotten", func() bool { // no later fetch could be let
		_, err := tenant(f, token)
		return errors.Is(err, scope.ErrUnknown)
	})
}
