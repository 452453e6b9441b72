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
