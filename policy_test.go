package semel_test

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// §2: the policy is stored, and the stricter of record and call wins, so that
// a rolling deploy can't weaken a key.
func TestPolicy_RecordAndCallDiffer_StricterApplies(t *testing.T) {
	st, advance := clocked()
	retry, park := guard(t, st, nil), guard(t, st, &semel.Options{OnDoubt: semel.Park})
	crash(t, st, semel.Park, "made strict", time.Second)
	crash(t, st, semel.Retry, "met by strict", time.Second)
	advance(time.Second)
	_, err := retry.Run(t.Context(), ann("made strict"), never(t))
	wantErr(t, err, semel.ErrParked)
	_, err = park.Run(t.Context(), ann("met by strict"), never(t))
	wantErr(t, err, semel.ErrParked)

	// A released record of a strict Guard stays strict in a lax one's hands.
	_, err = park.Run(t.Context(), ann("released"), fail(semel.NoEffect(errBoom)))
	wantErr(t, err, errBoom)
	_, err = retry.Run(t.Context(), ann("released"), fail(errBoom))
	wantErr(t, err, semel.ErrParked)
}

// Section 2: who was strict once stays so, also when an operator frees the key.
func TestPolicy_ResolvedAfterPark_StaysPark(t *testing.T) {
	st, advance := clocked()
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
	_, _ = guard(t, st, nil).Run(t.Context(), ann("k"), fail(errBoom)) // timeout after the effect
	_, err := guard(t, st, &semel.Options{OnDoubt: semel.Park}).Run(t.Context(), ann("k"), answer("again"))
	wantErr(t, err, semel.ErrParked)
}

// Who has to find out whether a parked call took effect goes by what the record
// says of it.
func TestLastError_ParkedOrExhausted_NamesCause(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	st := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	_, _ = guard(t, st, nil).Run(t.Context(), ann("failed"), fail(errBoom))
	if f, err := st.Claim(t.Context(), store.Proposal{ // by a process that dies
		Key: store.Key{Operation: string(pay), Tenant: "ann", Value: "died"}, State: store.Processing, Owner: store.Owner{1}, Holder: "host/1",
		Attempt: 1, Lease: time.Second, Error: "boom",
	}); err != nil || !f.Won {
		t.Fatalf("won %v, %v", f.Won, err)
	}
	now = now.Add(time.Minute)
	for _, c := range []struct {
		name, key, says, not string
		o                    semel.Options
	}{
		{"a failed attempt, parked", "failed", "boom", "lapsed", semel.Options{OnDoubt: semel.Park}},
		{"a dead one, and none is left", "died", "host/1 died", "boom", semel.Options{MaxAttempts: 1}},
	} {
		_, err := guard(t, st, &c.o).Run(t.Context(), ann(c.key), never(t))
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), c.not) {
			t.Errorf("%s: the caller is told %v", c.name, err)
		}
		if is := record(t, guard(t, st, nil), c.key).LastError; !strings.Contains(is, c.says) || strings.Contains(is, c.not) {
			t.Errorf("%s: the record says %q", c.name, is)
		}
	}
}

// A reservation made after the doubt does not answer it.
func TestPolicy_ReservedAfterDoubt_ParkDoesNotRunIt(t *testing.T) {
	st := memstore.New(nil)
	retry, park := guard(t, st, nil), guard(t, st, &semel.Options{OnDoubt: semel.Park})
	_, _ = retry.Run(t.Context(), ann("k"), fail(errBoom)) // timeout after the effect
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
		t.Errorf("the record is %v", r.State)
	}
}
