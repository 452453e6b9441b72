package semel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// hashSecret is a secret for Options.HashKeys.
var hashSecret = []byte("0123456789abcdef0123456789abcdef")

// secretCall is a call whose tenant and key must not be in the store.
func secretCall(key string) semel.Call {
	return semel.Call{Operation: pay, Tenant: "ann " + canary, Key: key + " " + canary, Payload: semel.NoPayload()}
}

// hashedKey is the key of secretCall as the store must have it.
func hashedKey(key string) store.Key {
	c := secretCall(key)
	return store.Key{Operation: c.Operation, Tenant: c.Tenant, Value: c.Key}.Hashed(hashSecret)
}

// wantHashed fails if x does not show the hashes of a secretCall.
func wantHashed(t *testing.T, x *semel.Execution, key string) {
	t.Helper()
	want := hashedKey(key)
	if x.Tenant() != want.Tenant || x.Key() != want.Value || strings.Contains(x.DownstreamKey("bank"), canary) {
		t.Errorf("the run has the tenant %q and the key %q, want %q and %q", x.Tenant(), x.Key(), want.Tenant, want.Value)
	}
}

// Each way to a record hashes tenant and key once, in each of two processes.
func TestHashKeys_EachWayToARecord_HashedOnce(t *testing.T) {
	st := memstore.New(nil)
	runs := map[string]int{}
	for i := range 2 {
		var events strings.Builder
		o := semel.Options{HashKeys: hashSecret, OnDoubt: semel.Park, Observe: func(_ context.Context, e semel.Event) { fmt.Fprintf(&events, "%+v\n", e) }}
		var asked []string
		o.Reconcile = func(_ context.Context, x *semel.Execution) (semel.Verdict, error) {
			wantHashed(t, x, "asked")
			asked = append(asked, x.DownstreamKey("bank"))
			return semel.Happened("done"), nil
		}
		g := guard(t, st, &o)
		run := func(call semel.Call, key string) (semel.Result, error) {
			return g.Run(t.Context(), call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
				wantHashed(t, x, key)
				runs[key]++
				return store.Outcome{}, semel.Once(ctx, g, x.Step("charge"), func(_ context.Context, step *semel.Execution) error {
					wantHashed(t, step, key)
					runs["step of "+key]++
					return nil
				})
			})
		}
		if res, err := run(secretCall("run"), "run"); err != nil || res.Replayed != (i > 0) {
			t.Errorf("a run: replayed %v, %v", res.Replayed, err)
		}
		ticket, err := g.Reserve(t.Context(), secretCall("reserved"))
		if err != nil || i > 0 != (ticket.Result != nil) {
			t.Fatalf("a reservation: %+v, %v", ticket, err)
		}
		if i == 0 {
			call, err := g.Redeem(ticket.Token)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := run(call, "reserved"); err != nil {
				t.Errorf("a redeemed call: %v", err)
			}
		}
		var sent string
		_, err = g.Run(t.Context(), secretCall("asked"), func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
			wantHashed(t, x, "asked")
			sent = x.DownstreamKey("bank")
			return store.Outcome{}, errBoom
		})
		if i == 0 {
			wantReason(t, err, semel.ErrParked)
			if n, err := g.Reconcile(t.Context(), pay, 10); n != 1 || err != nil || len(asked) != 1 || asked[0] != sent {
				t.Errorf("reconciled %d, %v, asked about %q; the handler used %q", n, err, asked, sent)
			}
		} else if err != nil {
			t.Errorf("a duplicate of the reconciled call: %v", err)
		}
		for _, key := range []string{"run", "reserved", "asked"} {
			if r, err := g.Get(t.Context(), secretCall(key)); err != nil || r.Key != hashedKey(key) {
				t.Errorf("Get of %q has %+v, %v", key, r.Key, err)
			}
		}
		if strings.Contains(events.String(), canary) {
			t.Errorf("the events show the key: %s", &events)
		}
	}
	for _, key := range []string{"run", "reserved"} {
		if runs[key] != 1 || runs["step of "+key] != 1 {
			t.Errorf("%q ran %d times, and its step %d times", key, runs[key], runs["step of "+key])
		}
	}
	noCanary(t, st, 3)
	tenant := hashedKey("").Tenant
	if r, err := erase.Run(t.Context(), st, erase.Scope{Tenant: tenant}, nil); err != nil || r.Erased != 3 {
		t.Errorf("erased %+v of the tenant, %v; want 3", r, err)
	}
}

// A rerun of a call and one of its redeemed token hold the same second key.
func TestHashKeys_Rerun_SecondKeyIsHashedOnce(t *testing.T) {
	st := memstore.New(nil)
	g := guard(t, st, &semel.Options{HashKeys: hashSecret, Rerun: true})
	ticket, err := g.Reserve(t.Context(), secretCall("read"))
	if err != nil {
		t.Fatal(err)
	}
	redeemed, err := g.Redeem(ticket.Token)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []semel.Call{redeemed, redeemed, secretCall("read")} {
		_, err := g.Run(t.Context(), call, func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
			wantHashed(t, x, "read")
			return store.Outcome{}, nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	noCanary(t, st, 2)
}

func TestRunIn_HashKeys_HashedOnce(t *testing.T) {
	g, tx := guard(t, clockless{}, &semel.Options{HashKeys: hashSecret}), newTx()
	for i := range 2 {
		res, err := driver.RunIn(t.Context(), g, tx, secretCall("in"), func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
			wantHashed(t, x, "in")
			return store.Outcome{Body: []byte("x")}, nil
		})
		wantBody(t, res, err, "x", i > 0)
	}
	call, err := driver.NewTxCall(g, secretCall("batch"))
	if err != nil || call.Key() != hashedKey("batch") {
		t.Fatalf("a call of a batch has the key %+v, %v", call.Key(), err)
	}
	if p, _ := call.Proposal(t.Context()); p.Key != hashedKey("batch") {
		t.Errorf("its proposal has the key %+v", p.Key)
	}
	for k := range tx.records {
		if k != hashedKey("in") {
			t.Errorf("the transaction has the key %+v", k)
		}
	}
}

// A call that all tenants share has no tenant in the store.
func TestHashKeys_Shared_TenantStaysEmpty(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{HashKeys: hashSecret})
	call := secretCall("shared")
	call.Tenant = semel.Shared
	if err := semel.Once(t.Context(), g, call, func(context.Context, *semel.Execution) error { return nil }); err != nil {
		t.Fatal(err)
	}
	r, err := g.Get(t.Context(), call)
	if want := (store.Key{Operation: pay, Value: call.Key}).Hashed(hashSecret); err != nil || r.Key != want || r.Key.Tenant != "" {
		t.Errorf("the record has the key %+v, %v; want %+v", r.Key, err, want)
	}
}

// Under another secret, or without one, a key is another key. A change of the caller's
// slice changes no key.
func TestHashKeys_OtherSecret_IsAnotherKey(t *testing.T) {
	st := memstore.New(nil)
	secret := append([]byte(nil), hashSecret...)
	first := guard(t, st, &semel.Options{HashKeys: secret})
	other := append([]byte("x"), hashSecret...)
	for _, g := range []*semel.Guard{first, guard(t, st, &semel.Options{HashKeys: other}), guard(t, st, nil)} {
		res, err := g.Run(t.Context(), ann("k"), answer("x"))
		wantBody(t, res, err, "x", false)
	}
	clear(secret)
	res, err := first.Run(t.Context(), ann("k"), never(t))
	wantBody(t, res, err, "x", true)
}

// A token from before HashKeys was turned on finds its reservation.
func TestRedeem_TokenWithoutHash_FindsItsReservation(t *testing.T) {
	st := memstore.New(nil)
	ticket, err := guard(t, st, nil).Reserve(t.Context(), ann("k"))
	if err != nil {
		t.Fatal(err)
	}
	g := guard(t, st, &semel.Options{HashKeys: hashSecret})
	call, err := g.Redeem(ticket.Token)
	if err != nil {
		t.Fatal(err)
	}
	res, err := g.Run(t.Context(), call, answer("x"))
	wantBody(t, res, err, "x", false)
}

// An empty secret of a file that could not be read does not turn hashing off.
func TestNew_UnfitHashKeys_IsRefused(t *testing.T) {
	for _, secret := range [][]byte{{}, []byte("short"), make([]byte, 31)} {
		_, err := semel.New(memstore.New(nil), &semel.Options{HashKeys: secret})
		if !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprintf("HashKeys: has %d bytes; at least 32", len(secret))) {
			t.Errorf("%d bytes: %v", len(secret), err)
		}
	}
}

func TestSaga_GuardWithHashKeys_IsRefused(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{HashKeys: hashSecret, Lease: time.Minute})
	_, err := saga.New(g, saga.Definition[string, string]{
		Name: "order", Steps: []string{"charge"}, Run: func(context.Context, *saga.Run, string) (string, error) { return "", nil },
	})
	if !errors.Is(err, semel.ErrInvalid) || !strings.Contains(err.Error(), "has HashKeys") {
		t.Errorf("error %v, want one that names HashKeys", err)
	}
}

// The store has a hash in place of the tenant, and erase.Run gets the same hash.
func ExampleOptions_hashKeys() {
	ctx, st := context.Background(), memstore.New(nil)
	secret := []byte("in a service: 32 random bytes ..")
	guard, err := semel.New(st, &semel.Options{HashKeys: secret}) // at least 32 random bytes
	if err != nil {
		fmt.Println(err)
		return
	}
	call := semel.Call{Operation: "charge", Tenant: "ann@example.org", Key: "order-7", Payload: semel.NoPayload()}
	err = semel.Once(ctx, guard, call, func(_ context.Context, x *semel.Execution) error {
		fmt.Println("the tenant is", x.Tenant()[:8]+"…")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	r, err := erase.Run(ctx, st, erase.Scope{Tenant: store.Key{Tenant: "ann@example.org"}.Hashed(secret).Tenant}, nil)
	fmt.Println("erased:", r.Erased, err)
	// Output:
	// the tenant is 99f3fd63…
	// erased: 1 <nil>
}
