package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// Steps that no replica has may be lost in a fail-over, and a record that no replica has seen
// erased may come back. Neither is told as done.
func TestReplicaAway_StepsAndErasure_AreNotConfirmed(t *testing.T) {
	t.Parallel()
	f := redistest.StartFailover(t, redistest.Fast...)
	patient := openFailover(t, f, &Options{Replicas: 1, AckTimeout: 30 * time.Second})
	held := claim(t, patient, "k")
	complete(t, patient, "old", "earlier")
	old := get(t, patient, "old")
	s := openFailover(t, f, &Options{Replicas: 1, AckTimeout: 100 * time.Millisecond})
	if err := f.Cut(); err != nil {
		t.Fatal(err)
	}
	if err := s.RecordStep(t.Context(), held.Lease(), store.Step{Name: "pay"}); !errors.Is(err, ErrUnconfirmed) {
		t.Fatalf("the step: %v, want ErrUnconfirmed", err)
	}
	if steps, err := s.Steps(t.Context(), held.Lease()); !errors.Is(err, ErrUnconfirmed) || len(steps) != 0 {
		t.Errorf("the steps are %v, %v; want ErrUnconfirmed", steps, err)
	}
	for _, sending := range []string{"first", "second"} {
		if err := s.Erase(t.Context(), old.Seen()); !errors.Is(err, ErrUnconfirmed) {
			t.Errorf("the %s erasure: %v, want ErrUnconfirmed", sending, err)
		}
	}
}
