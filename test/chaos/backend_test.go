//go:build unix

package chaos

import (
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/test/internal/stores"
)

// onEach runs a test against each store.
func onEach(t *testing.T, f func(t *testing.T, b stores.Backend, in stores.Instance)) {
	for _, b := range stores.Backends {
		t.Run(b.Name, func(t *testing.T) { f(t, b, b.Start(t)) })
	}
}

// onEachPolicy runs a test against each store under each policy, in parallel.
func onEachPolicy(t *testing.T, f func(t *testing.T, b stores.Backend, in stores.Instance, policy semel.Policy)) {
	for _, b := range stores.Backends {
		for _, policy := range policies {
			t.Run(b.Name+"/"+policy.String(), func(t *testing.T) {
				t.Parallel()
				f(t, b, b.Start(t), policy)
			})
		}
	}
}

// policies are the on-doubt policies.
var policies = []semel.Policy{semel.Retry, semel.Park}

// opened is the store for the test itself.
func opened(t testing.TB, b stores.Backend, in stores.Instance) store.Store {
	t.Helper()
	st, end, err := b.Open(t.Context(), in.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return st
}
