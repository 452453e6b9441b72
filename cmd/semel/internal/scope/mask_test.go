package scope_test

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/scope"
)

// The error is logged, and /readyz shows it.
func TestKeySet_CannotBeFetched_ErrorShowsNoURL(t *testing.T) {
	for _, from := range []string{"http://u:canary@127.0.0.1:1/jwks?token=canary", "http://127.0.0.1:1/%zz?token=canary"} {
		if err := scope.NewKeySet(from, nil).Load(t.Context()); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v", err)
		}
	}
}
