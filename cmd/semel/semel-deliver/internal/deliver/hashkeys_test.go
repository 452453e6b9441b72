package deliver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// With HashKeys the service gets the hash of the key, the same in each attempt, and the
// store has neither the key nor the tenant.
func TestServe_HashKeys_ServiceGetsTheHashInEachAttempt(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	b, e, st := newBroker(), newEndpoint(t, answers(500, 200)), memstore.New(nil)
	b.publish("canary-key", "", "x", "tenant", "canary-tenant")
	serve(t, st, b, e.URL, func(o *Options) { o.HashKeys, o.Calls.TenantHeader = secret, "tenant" })
	b.settled(t)
	want := store.Key{Operation: "billing", Tenant: "canary-tenant", Value: "canary-key"}.Hashed(secret)
	got := e.requests()
	if len(got) != 2 || got[0].key != want.Value || got[1].key != want.Value {
		t.Errorf("the service got %d requests: %+v", len(got), got)
	}
	n := 0
	for f, err := range st.List(t.Context(), store.Filter{}) {
		if n++; err != nil || f.Record.Key != want || strings.Contains(fmt.Sprintf("%+v", f.Record), "canary") {
			t.Errorf("the store has %+v, %v", f.Record, err)
		}
	}
	if n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}
