package scope_test

import (
	"net/http/httptest"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/semel-go/semel/cmd/semel/internal/scope"
)

// encoding/json reads each half of a surrogate pair as U+FFFD, so that two tenants become one.
func TestTenant_ClaimsThatAreNoUnicode_AreNotOneTenant(t *testing.T) {
	rule, err := scope.Parse("jwt-unverified:sub", "scope")
	if err != nil {
		t.Fatal(err)
	}
	f, err := scope.NewFinder(rule, nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte("0123456789abcdef0123456789abcdef")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	tenant := func(claims string) string {
		signed, err := signer.Sign([]byte(claims))
		if err != nil {
			t.Fatal(err)
		}
		token, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		name, err := f.Tenant(r)
		t.Logf("%s: tenant %q, %v", claims, name, err)
		return name
	}
	if a, b := tenant(`{"sub":"\ud800"}`), tenant(`{"sub":"\ud801"}`); a == b && a != "" {
		t.Errorf("both are the tenant %q", a)
	}
	if a := tenant(`{"sub":"\ud83d\ude00"}`); a != "😀" {
		t.Errorf("a whole pair is the tenant %q", a)
	}
	// An issuer may change from numbers to texts.
	if a, b := tenant(`{"sub":7}`), tenant(`{"sub":"7"}`); a != "7" || b != "7" {
		t.Errorf("the number is the tenant %q, and the text %q", a, b)
	}
}
