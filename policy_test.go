package semel_test

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// The record keeps its policy, and the stricter of record and call applies, so that
// a rolling deployment cannot weaken a key.
func TestPolicy_RecordAndCallDiffer_StricterApplies(t *testing.T) {
	st, advance := newClockedStore()
	retry, park := guard(t, st, nil), guard(t, st, &semel.Options{OnDoubt: semel.Park})
	crash(t, st, semel.Park, "made strict", time.Second)
	crash(t, st, semel.Retry, "met by strict", time.Second)
	advance(time.Second)
	_, err := retry.Run(t.Context(), ann("made strict"), never(t))
	wantErr(t, err, semel.ErrParked)
	_, err = park.Run(t.Context(), ann("met by strict"), never(t))
	wantErr(t, err, semel.ErrParked)

	// A Guard with Retry runs a released record of a Guard with Park under Park.
	_, err = park.Run(t.Context(), ann("released"), fail(semel.NoEffect(errBoom)))
	wantErr(t, err, errBoom)
	_, err = retry.Run(t.Context(), ann("released"), fail(errBoom))
	wantErr(t, err, semel.ErrParked)
}

// A parked record stays under Park, even if an operator releases it.
func TestPolicy_ResolvedAfterPark_StaysPark(t *testing.T) {
	st, advance := newClockedStore()
	retry, park := guard(t, st, nil), guard(t, st, &semel.Options{OnDoubt: semel.Park})
	crash(t, st, semel.Retry, "k", time.Second)
	advance(time.Second)
	_, err := park.Run(t.Context(), ann("k"), never(t))
	wantErr(t, err, semel.ErrParked)
	if err := park.Resolve(t.Context(), record(t, park, "k"), semel.DidNotHappen()); err != nil {
		t.Fatal(err)
	}
	_, err = retry.Run(t.Context(), ann("k"), fail(errBoom))
	wantErr(t, err, semel.ErrParked)
	wantState(t, guard(t, st, nil), "k", store.Unknown)
}

func TestPolicy_FailedUnderRetry_ParkDoesNotRunIt(t *testing.T) {
	st := memstore.New(nil)
	_, _ = guard(t, st, nil).Run(t.Context(), ann("k"), fail(errBoom)) // the effect may have happened
	_, err := guard(t, st, &semel.Options{OnDoubt: semel.Park}).Run(t.Context(), ann("k"), answer("again"))
	wantErr(t, err, semel.ErrParked)
}

// An operator who has to find out whether the effect happened starts with the
// record's LastError.
func TestLastError_ParkedOrExhausted_NamesCause(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	st := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	_, _ = guard(t, st, nil).Run(t.Context(), ann("failed"), fail(errBoom))
	if f, err := st.Claim(t.Context(), store.Proposal{ // the claim of a process that dies
		Key: store.Key{Operation: string(pay), Tenant: "ann", Value: "died"}, State: store.Processing, Owner: store.Owner{1}, Holder: "host/1",
		Attempt: 1, Lease: time.Second, Error: "boom",
	}); err != nil || !f.Won {
		t.Fatalf("won %v, %v", f.Won, err)
	}
	now = now.Add(time.Minute)
	for _, c := range []struct {
		name, key, cause, not string
		o                     semel.Options
	}{
		{"a failed attempt, now parked", "failed", "boom", "lapsed", semel.Options{OnDoubt: semel.Park}},
		{"a crashed attempt, none left", "died", "host/1 died", "boom", semel.Options{MaxAttempts: 1}},
	} {
		_, err := guard(t, st, &c.o).Run(t.Context(), ann(c.key), never(t))
		if err == nil || !strings.Contains(err.Error(), c.cause) || strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: the error is %v, want %q and not %q", c.name, err, c.cause, c.not)
		}
		if last := record(t, guard(t, st, nil), c.key).LastError; !strings.Contains(last, c.cause) || strings.Contains(last, c.not) {
			t.Errorf("%s: LastError is %q, want %q and not %q", c.name, last, c.cause, c.not)
		}
	}
}

// A reservation made after the doubt does not remove the doubt.
func TestPolicy_ReservedAfterDoubt_ParkDoesNotRunIt(t *testing.T) {
	st := memstore.New(nil)
	retry, park := guard(t, st, nil), guard(t, st, &semel.Options{OnDoubt: semel.Park})
	_, _ = retry.Run(t.Context(), ann("k"), fail(errBoom)) // the effect may have happened
	ticket, err := retry.Reserve(t.Context(), ann("k"))
	if err != nil {
		t.Fatal(err)
	}
	call, err := park.Redeem(ticket.Token)
	if err != nil {
		t.Fatal(err)
	}
	_, err = park.Run(t.Context(), call, never(t))
	wantErr(t, err, semel.ErrParked)
	if r := record(t, park, "k"); r.State != store.Unknown {
		t.Errorf("the record is %v, want unknown", r.State)
	}
}
