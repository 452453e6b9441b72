package redisstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/redisstore/redistest"
)

// doubtful is a store that wants an acknowledgement which nobody gives: the
// shared server has no replicas. The other handle wants none.
func doubtful(t *testing.T) (strict, other *Store) {
	o := Options{Prefix: newPrefix(), Replicas: 1, AckTimeout: 10 * time.Millisecond, AllowPark: true}
	strict = openNew(t, &o)
	return strict, openOn(t, strict.client, &Options{Prefix: o.Prefix, AllowPark: true})
}

func TestAClaimThatTooFewAcknowledgeIsUndone(t *testing.T) {
	s, other := doubtful(t)
	p := proposal("new")
	f, err := s.Claim(t.Context(), p)
	if !errors.Is(err, ErrNotAcknowledged) || f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	if _, err := other.Get(t.Context(), p.Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
	again := claim(t, other, "new") // the refused fence is not given again
	if again.Fence == 0 {
		t.Error("no fence")
	}
	if err := s.Settle(t.Context(), store.Lease{Key: p.Key, Owner: p.Owner, Fence: again.Fence}, completion("x")); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the undone claim settles: %v", err)
	}
}

// So is one whose first sending had no answer.
func TestAClaimThatFindsItselfUnacknowledgedIsUndone(t *testing.T) {
	s, other := doubtful(t)
	p := proposal("k")
	if f, err := other.Claim(t.Context(), p); err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	if _, err := s.Claim(t.Context(), proposal("k")); errors.Is(err, ErrNotAcknowledged) {
		t.Errorf("who finds another's record: %v", err) // it claims nothing
	}
	if f, err := s.Claim(t.Context(), p); !errors.Is(err, ErrNotAcknowledged) || f.Won {
		t.Errorf("won %v, error %v", f.Won, err)
	}
	if _, err := other.Get(t.Context(), p.Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
}

// The refused claim's fence stays used: who comes next has a higher one, even
// if the clock was set back.
func TestAnUndoneClaimsFenceStaysUsed(t *testing.T) {
	o := Options{Prefix: newPrefix(), Replicas: 1, AckTimeout: 10 * time.Millisecond}
	o.clock = "1700000000000000"
	s := openNew(t, &o)
	if _, err := s.Claim(t.Context(), proposal("k")); !errors.Is(err, ErrNotAcknowledged) {
		t.Fatal(err)
	}
	next := openOn(t, s.client, &Options{Prefix: o.Prefix, clock: "1600000000000000"})
	if r := claim(t, next, "k"); r.Fence <= 1_700_000_000_000_000 {
		t.Errorf("fence %d after one of 1700000000000000", r.Fence)
	}
}

func TestASwapThatTooFewAcknowledgeIsUndone(t *testing.T) {
	s, other := doubtful(t)
	for _, state := range []store.State{store.Processing, store.Unknown, store.Released, store.Completed} {
		old := claim(t, other, state.String())
		if state != store.Processing {
			end := completion("x")
			end.State = state
			if err := other.Settle(t.Context(), old.Lease(), end); err != nil {
				t.Fatal(err)
			}
			old = get(t, other, state.String())
		}
		f, err := s.Swap(t.Context(), old.Seen(), proposal(state.String()))
		if !errors.Is(err, ErrNotAcknowledged) || f.Won {
			t.Fatalf("%v: won %v, error %v", state, f.Won, err)
		}
		now := get(t, other, state.String())
		if now.Fence <= old.Fence {
			t.Errorf("%v: the fence went from %d to %d", state, old.Fence, now.Fence)
		}
		now.Fence = old.Fence
		if now.State != old.State || now.Owner != old.Owner || !now.Expires.Equal(old.Expires) || !now.Until.Equal(old.Until) || !now.Outcome.Equal(old.Outcome) {
			t.Errorf("%v: it is not what it was:\n%+v\n%+v", state, now, old)
		}
		record, _ := other.name(now.Key.Digest())
		ttl := other.client.TTL(t.Context(), record).Val()
		if expires := !old.Expires.IsZero(); expires != (ttl > 0) || ttl > 2*time.Hour { // retention and Linger
			t.Errorf("%v: Redis keeps it for %v", state, ttl)
		}
	}
}

func TestASettlementThatTooFewAcknowledgeIsKeptAndReported(t *testing.T) {
	s, other := doubtful(t)
	r := claim(t, other, "k")
	for range 2 { // and each time again
		if err := s.Settle(t.Context(), r.Lease(), completion("x")); !errors.Is(err, ErrUnconfirmed) {
			t.Errorf("%v, want ErrUnconfirmed", err)
		}
		if got := get(t, other, "k"); got.State != store.Completed {
			t.Errorf("it is %v", got.State)
		}
	}
	if err := s.Settle(t.Context(), r.Lease(), completion("another")); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("another settlement: %v", err)
	}
	record, _ := s.name(r.Key.Digest())
	if ttl := s.client.TTL(t.Context(), record).Val(); ttl <= 0 || ttl > 2*time.Hour {
		t.Errorf("sent again, Redis keeps it for %v", ttl)
	}
	lapsed := claim(t, other, "park")
	p := proposal("park")
	p.State = store.Unknown
	f, err := s.Swap(t.Context(), lapsed.Seen(), p)
	if !errors.Is(err, ErrUnconfirmed) || get(t, other, "park").State != store.Unknown {
		t.Errorf("parking: won %v, error %v", f.Won, err)
	}
}

func TestARenewalThatTooFewAcknowledgeIsNone(t *testing.T) {
	s, other := doubtful(t)
	r := claim(t, other, "k")
	errs, err := s.Renew(t.Context(), []store.Lease{r.Lease()}, time.Hour)
	if err != nil || !errors.Is(errs[0], ErrNotAcknowledged) {
		t.Errorf("%v, error %v", errs, err)
	}
}

// With a replica that acknowledges, a claim sent again after a lost reply is
// acknowledged too, though it changes nothing.
func TestAReplicaAcknowledges(t *testing.T) {
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	replica := redistest.Start(t, "--replicaof", "127.0.0.1 "+itoa(master.Port()))
	c := clientAt(t, master.URL())
	s := openOn(t, c, &Options{Replicas: 1, AckTimeout: 10 * time.Second})
	waitFor(t, "the replica follows", func() bool {
		return strings.Contains(c.Info(t.Context(), "replication").Val(), "state=online")
	})
	p := proposal("k")
	var f store.Found
	for range 2 {
		var err error
		if f, err = s.Claim(t.Context(), p); err != nil || !f.Won {
			t.Fatalf("won %v, error %v", f.Won, err)
		}
	}
	if errs, err := s.Renew(t.Context(), []store.Lease{f.Record.Lease()}, time.Minute); err != nil || errs[0] != nil {
		t.Errorf("%v, %v", errs, err)
	}
	for range 2 {
		if err := s.Settle(t.Context(), f.Record.Lease(), completion("x")); err != nil {
			t.Error(err)
		}
	}
	// It stops, with its link up. What is sent again, on a connection that has
	// written nothing yet, is not acknowledged by what the replica had before.
	replica.Freeze()
	defer replica.Thaw()
	q := proposal("frozen")
	g, err := openOn(t, c, nil).Claim(t.Context(), q)
	if err != nil || !g.Won {
		t.Fatalf("won %v, error %v", g.Won, err)
	}
	fresh := func() *Store {
		return openOn(t, clientAt(t, master.URL()), &Options{Replicas: 1, AckTimeout: 50 * time.Millisecond})
	}
	if err := fresh().Settle(t.Context(), f.Record.Lease(), completion("x")); !errors.Is(err, ErrUnconfirmed) {
		t.Errorf("a settlement, again: %v", err)
	}
	if g, err := fresh().Claim(t.Context(), q); !errors.Is(err, ErrNotAcknowledged) {
		t.Errorf("a claim, again: won %v, error %v", g.Won, err)
	}
	plain := openOn(t, c, nil)
	held, swapped := claim(t, plain, "held"), proposal("held")
	if f, err := plain.Swap(t.Context(), held.Seen(), swapped); err != nil || !f.Won {
		t.Fatalf("won %v, error %v", f.Won, err)
	}
	if f, err := fresh().Swap(t.Context(), held.Seen(), swapped); !errors.Is(err, ErrNotAcknowledged) {
		t.Errorf("a swap, again: won %v, error %v", f.Won, err)
	}
}

// A read changes nothing that could be acknowledged: who looks at a key while
// no replica answers is told at once.
func TestAReadWaitsForNoAcknowledgement(t *testing.T) {
	s, other := doubtful(t)
	complete(t, other, "k", "x")
	waits := &waitHook{after: func(int) int64 { return 0 }}
	s.client.AddHook(waits)
	if got := get(t, s, "k"); got.State != store.Completed || waits.n != 0 {
		t.Errorf("it is %v, and %d replies had to be waited for", got.State, waits.n)
	}
	if f, err := s.Claim(t.Context(), proposal("k")); err != nil || f.Won || waits.n != 1 {
		t.Errorf("a claim: won %v, error %v, %d waits: the harness is blind", f.Won, err, waits.n)
	}
}
