package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// The replica hangs, and its link stays up. By its documentation, WAIT concerns the writes of
// its connection, so that each question has to write. (Redis 7.0 lets WAIT concern all writes
// before it, so the commands are counted, too.)
func TestDuplicate_ReplicaHangs_IsNotAnswered(t *testing.T) {
	t.Parallel()
	settled := func(state store.State) func(*Store) store.Record {
		return func(plain *Store) store.Record {
			r, end := claim(t, plain, "k"), completion("receipt")
			end.State = state
			if err := plain.Settle(t.Context(), r.Lease(), end); err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	changed := func(state store.State) func(*Store) store.Record {
		return func(plain *Store) store.Record {
			r, next := claim(t, plain, "k"), proposal("k")
			next.State = state
			if _, err := plain.Swap(t.Context(), r.Seen(), next); err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	for name, c := range map[string]struct {
		make  func(plain *Store) (first store.Record)
		state store.State
	}{
		"completed": {settled(store.Completed), store.Completed}, "failed": {settled(store.Failed), store.Failed},
		"parked": {changed(store.Unknown), store.Unknown}, "taken over": {changed(store.Processing), store.Processing},
		"reserved": {func(plain *Store) store.Record {
			p := proposal("k")
			p.State = store.Started
			f, err := plain.Claim(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			return f.Record
		}, store.Started},
	} {
		t.Run(name, func(t *testing.T) { refusesDuplicatesWhileReplicaHangs(t, c.make, c.state) })
	}
}

func refusesDuplicatesWhileReplicaHangs(t *testing.T, makeRecord func(plain *Store) store.Record, state store.State) {
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	replica := redistest.Start(t, "--replicaof", "127.0.0.1 "+itoa(master.Port()))
	c := clientAt(t, master.URL())
	waitFor(t, "the replica follows", func() bool {
		return strings.Contains(c.Info(t.Context(), "replication").Val(), "state=online")
	})
	patient := openOn(t, c, &Options{Replicas: 1, AckTimeout: 30 * time.Second})
	old := claim(t, patient, "old")
	if err := patient.Settle(t.Context(), old.Lease(), completion("x")); err != nil { // the replica has acknowledged something
		t.Fatal(err)
	}
	replica.Freeze()
	defer replica.Thaw()
	held := makeRecord(openOn(t, c, &Options{AllowPark: true}))
	questions := 0
	refusesDuplicates(t, held, state, func() *Store {
		questions++
		return openOn(t, clientAt(t, master.URL()), &Options{Replicas: 1, AckTimeout: 50 * time.Millisecond, AllowPark: true})
	})
	stats := c.Info(t.Context(), "commandstats").Val()
	if writes := fmt.Sprintf("cmdstat_setrange:calls=%d,", questions); !strings.Contains(stats, writes) {
		t.Errorf("want one write for each of %d questions:\n%s", questions, stats)
	}
}

// A record that no replica has is there: a reservation, a call in doubt, or a claim that was
// taken over. After a fail-over the token of such a record would have expired.
func TestReserve_RecordUnconfirmed_NoTicket(t *testing.T) {
	s, other := doubtful(t)
	call := func(key string) semel.Call {
		return semel.Call{Operation: "op", Tenant: "tenant", Key: key, Payload: semel.NoPayload()}
	}
	guard := func(st store.Store) *semel.Guard {
		g, err := semel.New(st, &semel.Options{StoreTimeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if _, err := guard(other).Reserve(t.Context(), call("reserved")); err != nil {
		t.Fatal(err)
	}
	for key, state := range map[string]store.State{"parked": store.Unknown, "taken over": store.Processing} {
		first := proposal(key)
		first.Key, first.Fingerprint = store.Key{Operation: "op", Tenant: "tenant", Value: key}, store.Fingerprint{}
		f, err := other.Claim(t.Context(), first)
		if err != nil || !f.Won {
			t.Fatalf("%s: won %v, %v", key, f.Won, err)
		}
		next := first
		next.State, next.Owner, next.Attempt = state, store.Owner{7}, 2
		if _, err := other.Swap(t.Context(), f.Record.Seen(), next); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"reserved", "parked", "taken over"} {
		if ticket, err := guard(s).Reserve(t.Context(), call(key)); !errors.Is(err, semel.ErrUnavailable) || ticket.Token != "" {
			t.Errorf("%s, without a replica: ticket %+v, %v; want ErrUnavailable", key, ticket, err)
		}
	}
	s.client.AddHook(&waitHook{after: func(int) int64 { return 1 }})
	for _, key := range []string{"reserved", "parked", "taken over"} {
		if ticket, err := guard(s).Reserve(t.Context(), call(key)); err != nil || ticket.Token == "" {
			t.Errorf("%s, with a replica: ticket %+v, %v", key, ticket, err)
		}
	}
}

// Another question about a claim in progress changes nothing, and nobody acts on its answer.
func TestClaim_FirstClaimInProgress_IsNotConfirmed(t *testing.T) {
	c := clientAt(t, redistest.Start(t).URL())
	s := openOn(t, c, &Options{Replicas: 1, AckTimeout: 10 * time.Millisecond})
	claim(t, openOn(t, c, nil), "k")
	if f, err := s.Claim(t.Context(), proposal("k")); err != nil || f.Won || f.Record.State != store.Processing {
		t.Errorf("won %v, state %v, error %v", f.Won, f.Record.State, err)
	}
	if stats := c.Info(t.Context(), "commandstats").Val(); strings.Contains(stats, "cmdstat_setrange") {
		t.Errorf("a first claim that is in progress was written again:\n%s", stats)
	}
}
