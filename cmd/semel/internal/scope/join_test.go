package scope

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"

	"github.com/go-jose/go-jose/v4"
)

// After a time without tokens a page sends several requests at once. The first one fetches
// the set, and the others wait for it a moment: they are no reason for a 503.
func TestKeySet_TokensAtOnceAfterIdleTime_AllAreVerified(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "a", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := NewKeySet("https://issuer.test/jwks", nil)
		answer := make(chan struct{}, 2)
		s.fetch = func(context.Context) ([]byte, error) { <-answer; return doc, nil }
		answer <- struct{}{}
		if err := s.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		results := make(chan error, 3)
		for range cap(results) {
			go func() {
				_, err := s.find(t.Context(), "a")
				results <- err
			}()
		}
		synctest.Wait() // one of them fetches, the others wait for it
		answer <- struct{}{}
		for range cap(results) {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}
