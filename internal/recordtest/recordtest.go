// Package recordtest makes the records that the tests of stores share.
package recordtest

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// Key is a key with this value. All have the same operation and tenant.
func Key(value string) store.Key {
	return store.Key{Operation: "charge", Tenant: "acme", Value: value}
}

// NewOwner is an owner that nobody else is.
func NewOwner() (o store.Owner) {
	_, _ = rand.Read(o[:])
	return o
}

// Proposal is a first claim of a key, by a new owner, for a minute.
func Proposal(value string) store.Proposal {
	return store.Proposal{
		Key: Key(value), State: store.Processing, Owner: NewOwner(), Holder: "test/1", Attempt: 1,
		Lease: time.Minute, Keep: time.Hour, Fingerprint: store.Fingerprint{Alg: "sha256", Sum: "sum of " + value},
	}
}

// Completion settles a first attempt with this body.
func Completion(body string) store.Settlement {
	return store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour, Outcome: store.Outcome{
		Code: 201, Codec: "json", Body: []byte(body), Header: []store.Header{{Name: "Content-Type", Value: "application/json"}},
	}}
}

// Claim claims a key, which must be free.
func Claim(t testing.TB, st store.Store, value string) store.Record {
	t.Helper()
	f, err := st.Claim(context.Background(), Proposal(value))
	if err != nil || !f.Won {
		t.Fatalf("claim of %s: won %v, error %v", value, f.Won, err)
	}
	return f.Record
}

// Complete claims a key and completes it with this body.
func Complete(t testing.TB, st store.Store, value, body string) store.Record {
	t.Helper()
	r := Claim(t, st, value)
	if err := st.Settle(context.Background(), r.Lease(), Completion(body)); err != nil {
		t.Fatalf("settle of %s: %v", value, err)
	}
	return Get(t, st, value)
}

// Get is the record of a key, which must be there.
func Get(t testing.TB, st store.Store, value string) store.Record {
	t.Helper()
	f, err := st.Get(context.Background(), Key(value))
	if err != nil {
		t.Fatalf("get of %s: %v", value, err)
	}
	return f.Record
}
