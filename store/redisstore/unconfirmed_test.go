package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/erase"
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
	if err := s.Confirm(t.Context()); !errors.Is(err, ErrUnconfirmed) {
		t.Errorf("Confirm without the replica: %v, want ErrUnconfirmed", err)
	}
}

// The first erasure deletes the record, and gets no acknowledgement. The second one finds no
// record, and a fail-over would still bring it back.
func TestReplicaAway_ErasureBegunAgain_IsNotDone(t *testing.T) {
	t.Parallel()
	f := redistest.StartFailover(t, redistest.Fast...)
	patient := openFailover(t, f, &Options{Replicas: 1, AckTimeout: 30 * time.Second})
	for _, key := range []string{"k", "of the tenant"} { // without an outcome, so that they are read without the replica
		held := claim(t, patient, key)
		if err := patient.Settle(t.Context(), held.Lease(), store.Settlement{State: store.Released, Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	s := openFailover(t, f, &Options{Replicas: 1, AckTimeout: 100 * time.Millisecond})
	if err := f.Cut(); err != nil {
		t.Fatal(err)
	}
	of := testKey("k")
	for _, scope := range []erase.Scope{{Tenant: of.Tenant, Operation: of.Operation, Key: of.Value}, {Tenant: of.Tenant}} {
		for try := range 2 {
			if r, err := erase.Run(t.Context(), s, scope, &erase.Options{StoreTimeout: time.Second}); !errors.Is(err, semel.ErrUnavailable) {
				t.Errorf("%+v, erasure %d: %+v, %v; want ErrUnavailable", scope, try+1, r, err)
			}
			if _, err := s.Get(t.Context(), of); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%+v, after erasure %d: %v; the test wants a record that is gone on the master", scope, try+1, err)
			}
		}
	}
}

// The Redis key that Confirm writes is not listed as a record, and expires.
func TestConfirm_ReplicaThere_NoRecordIsAdded(t *testing.T) {
	t.Parallel()
	f := redistest.StartFailover(t, redistest.Fast...)
	s := openFailover(t, f, &Options{Replicas: 1, AckTimeout: 30 * time.Second})
	if err := s.Confirm(t.Context()); err != nil {
		t.Errorf("with the replica: %v", err)
	}
	if left, err := s.client.PTTL(t.Context(), s.opt.Prefix+barrierName).Result(); err != nil || left == -1 {
		t.Errorf("what Confirm has written stays for ever: %v, %v", left, err)
	}
	for _, err := range s.List(t.Context(), store.Filter{}) {
		t.Errorf("an empty store lists a record, error %v", err)
	}
}

func TestConfirm_Cluster_EachMasterIsAsked(t *testing.T) {
	t.Parallel()
	all := redistest.StartCluster(t, true)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: all.Addrs()})
	t.Cleanup(func() { _ = c.Close() })
	s := openOn(t, c, &Options{Replicas: 1, AckTimeout: 30 * time.Second})
	if err := s.Confirm(t.Context()); err != nil {
		t.Errorf("with the replicas: %v", err)
	}
	for _, m := range all.Masters {
		written, _, err := clientAt(t, m.URL()).Scan(t.Context(), 0, s.opt.Prefix+"*"+barrierName, 10_000).Result()
		if err != nil || len(written) != 1 {
			t.Errorf("a master has the keys %q of Confirm, %v; want one", written, err)
		}
	}
	impatient := openOn(t, c, &Options{Replicas: 2, AckTimeout: 100 * time.Millisecond})
	if err := impatient.Confirm(t.Context()); !errors.Is(err, ErrUnconfirmed) {
		t.Errorf("each master has one replica, and two shall acknowledge: %v, want ErrUnconfirmed", err)
	}
}

func TestConfirm_NoAcknowledgementsAsked_NothingSent(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	if err := s.Confirm(t.Context()); err != nil {
		t.Error(err)
	}
	if n, err := s.client.Exists(t.Context(), s.opt.Prefix+barrierName).Result(); err != nil || n != 0 {
		t.Errorf("%d Redis keys of Confirm, %v; want none", n, err)
	}
}
