package redisstore

import (
	"context"
	"testing"

	"github.com/semel-go/semel"
)

// No claim is confirmed while the replicas are away. The record that each leaves is the call's
// own, so a Guard that goes on in an outage runs it; the call of somebody else's record is refused.
func TestUnprotected_ReplicaAway_OnlyNewCallRuns(t *testing.T) {
	s, other := doubtful(t)
	held := claim(t, other, "held").Key
	g, err := semel.New(s, &semel.Options{UnprotectedOnOutage: true})
	if err != nil {
		t.Fatal(err)
	}
	for key, isNew := range map[string]bool{"new": true, held.Value: false} {
		runs := 0
		err := semel.Once(t.Context(), g, semel.Call{Operation: held.Operation, Tenant: held.Tenant, Key: key, Payload: semel.NoPayload()}, func(context.Context, *semel.Execution) error {
			runs++
			return nil
		})
		if (err == nil) != isNew || (runs == 1) != isNew {
			t.Errorf("%s: %d runs, %v", key, runs, err)
		}
	}
}
