package pgstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/store"
)

// endedAtStandby is a store whose claims end while they wait for the standby, as they do when
// StoreTimeout is over. It counts them.
type endedAtStandby struct {
	*Store
	t     *testing.T
	srv   *standbyServer
	ended int
}

func (s *endedAtStandby) Claim(ctx context.Context, p store.Proposal) (f store.Found, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		f, err = s.Store.Claim(ctx, p)
	}()
	waitFor(s.t, "the claim is answered, or waits for the standby", func() bool {
		select {
		case <-answered:
			return true
		default:
			return s.srv.waiting(s.t) > 0
		}
	})
	cancel()
	if <-answered; err != nil {
		s.ended++
		waitFor(s.t, "the server has ended the wait, too", func() bool { return s.srv.waiting(s.t) == 0 })
	}
	return f, err
}

// A Guard may run handlers without a record while the store does not answer, but not that of a
// call whose record is there and only not confirmed.
func TestStandbyAway_UnprotectedOnOutage_CompletedCallDoesNotRun(t *testing.T) {
	srv := newStandbyServer(t)
	s := openAt(t, srv.URL(), nil)
	c := semel.Call{Operation: "pay", Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}
	runs := 0
	pay := func(context.Context, *semel.Execution) (string, error) {
		runs++
		return "receipt", nil
	}
	ends := &endedAtStandby{Store: s, t: t, srv: srv}
	g, err := semel.New(ends, &semel.Options{UnprotectedOnOutage: true, StoreTimeout: 5 * time.Minute, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := semel.Do(t.Context(), g, c, pay); err != nil {
		t.Fatal(err)
	}
	srv.standby(t, "away")
	if got, err := semel.Do(t.Context(), g, c, pay); !errors.Is(err, semel.ErrUnavailable) || got != "" || runs != 1 {
		t.Errorf("%q, %v, %d runs; want ErrUnavailable and one run", got, err, runs)
	}
	if ends.ended == 0 {
		t.Error("no claim has waited for the standby")
	}
	srv.standby(t, "")
	if got, err := semel.Do(t.Context(), g, c, pay); err != nil || got != "receipt" || runs != 1 {
		t.Errorf("%q, %v, %d runs", got, err, runs)
	}
}

// tooLarge is a handler whose result is not kept.
func tooLarge(context.Context, *semel.Execution) (store.Outcome, error) {
	return store.Outcome{Body: make([]byte, 5000)}, nil
}

// The first erasure deletes the record and gets no answer. The next one does not find the record,
// which a fail-over would bring back.
func TestStandbyAway_ErasureBegunAgain_IsNotDone(t *testing.T) {
	srv := newStandbyServer(t)
	s := openAt(t, srv.URL(), nil)
	of := testKey("")
	for name, scope := range map[string]erase.Scope{
		"a call":   {Tenant: of.Tenant, Operation: of.Operation, Key: "k"},
		"a tenant": {Tenant: of.Tenant},
	} {
		held := claim(t, s, "k") // a record without an outcome is read without the standby
		if err := s.Settle(t.Context(), held.Lease(), store.Settlement{State: store.Released, Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		srv.standby(t, "away")
		for try := range 2 {
			if r, err := erase.Run(t.Context(), s, scope, &erase.Options{StoreTimeout: 300 * time.Millisecond}); !errors.Is(err, semel.ErrUnavailable) {
				t.Errorf("%s, erasure %d: %+v, %v; want ErrUnavailable", name, try+1, r, err)
			}
			waitFor(t, "the server has ended the wait, too", func() bool { return srv.waiting(t) == 0 }) // the deletion is visible only then
			if _, err := s.Get(t.Context(), testKey("k")); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s, after erasure %d: %v; the test wants a record that is gone here", name, try+1, err)
			}
		}
		srv.standby(t, "")
		if r, err := erase.Run(t.Context(), s, scope, nil); err != nil || r.Left() > 0 {
			t.Errorf("%s, with the standby: %+v, %v", name, r, err)
		}
	}
}

// A record that no standby has is there: a call was parked, or its claim was taken over, and
// neither commit got an answer. After a fail-over the token of such a record would have expired.
func TestStandbyAway_ReserveFindsUnconfirmed_NoTicket(t *testing.T) {
	srv := newStandbyServer(t)
	s := openAt(t, srv.URL(), nil)
	g := leased(t, s, &semel.Options{StoreTimeout: 500 * time.Millisecond})
	noPayload := func(key string) semel.Call {
		c := call(key)
		c.Payload = semel.NoPayload()
		return c
	}
	unanswered := func(what string, change func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := change(ctx); err == nil {
			t.Errorf("%s is done without the standby", what)
		}
		waitFor(t, "the server has ended the wait, too", func() bool { return srv.waiting(t) == 0 })
	}
	srv.standby(t, "away")
	for key, state := range map[string]store.State{"parked": store.Unknown, "taken over": store.Processing} {
		c := noPayload(key)
		k := store.Key{Operation: c.Operation, Tenant: c.Tenant, Value: c.Key}
		first := proposal(key)
		first.Key, first.Lease, first.Fingerprint = k, time.Millisecond, store.Fingerprint{}
		unanswered("the claim", func(ctx context.Context) error { _, err := s.Claim(ctx, first); return err })
		f, err := s.Get(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		next := first
		next.State, next.Owner, next.Lease, next.Attempt = state, newOwner(), time.Hour, 2
		unanswered("the change", func(ctx context.Context) error { _, err := s.Swap(ctx, f.Record.Seen(), next); return err })
		if got := ask[int](t, srv.admin, "SELECT state FROM "+s.quoted()+".semel_record WHERE key = $1", key); got != int(state) {
			t.Fatalf("%s: the record has state %d, want %d", key, got, state)
		}
		if ticket, err := g.Reserve(t.Context(), c); !errors.Is(err, semel.ErrUnavailable) {
			t.Errorf("%s: ticket %+v, %v; want ErrUnavailable", key, ticket, err)
		}
	}
	srv.standby(t, "")
	for _, key := range []string{"parked", "taken over"} {
		if ticket, err := g.Reserve(t.Context(), noPayload(key)); err != nil || ticket.Token == "" {
			t.Errorf("%s, with the standby: ticket %+v, %v", key, ticket, err)
		}
	}
}
