package dynamostore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// Faults that other idempotency layers on DynamoDB have published. docs/dynamodb.md
// names the tests of the others.

// takenOver is a key whose first claim lapsed and that another process has claimed.
func takenOver(t *testing.T, s *Store, now *standingClock) (first, second store.Record) {
	t.Helper()
	first = claim(t, s, "k")
	now.advance(time.Hour)
	f, err := s.Swap(t.Context(), first.Seen(), proposal("k"))
	if err != nil || !f.Won {
		t.Fatalf("take-over: won %v, error %v", f.Won, err)
	}
	return first, f.Record
}

func openWithClock(t *testing.T) (*Store, *standingClock) {
	now := newStandingClock()
	return openNew(t, &Options{IndexShards: 1, now: now.read, noSkew: true}), now
}

// A completion and a failure without proof of ownership overwrite and delete the record
// of the process that took over (Powertools: UpdateItem and DeleteItem without a
// condition).
func TestSettle_ByFormerOwner_ChangesNothing(t *testing.T) {
	t.Parallel()
	s, now := openWithClock(t)
	first, second := takenOver(t, s, now)
	for _, state := range []store.State{store.Completed, store.Failed, store.Released, store.Unknown} {
		if err := s.Settle(t.Context(), first.Lease(), store.Settlement{State: state, Attempt: 1, Keep: time.Hour}); !errors.Is(err, store.ErrLeaseLost) {
			t.Errorf("%v: error %v, want ErrLeaseLost", state, err)
		}
	}
	if r := get(t, s, "k"); r.Lease() != second.Lease() || r.State != store.Processing {
		t.Errorf("the record is %v with fence %d, want the second claim", r.State, r.Fence)
	}
}

// A caller that found the key taken deletes the lock of its holder.
func TestSettle_ByCallerWithoutClaim_ClaimStays(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	holder, p := claim(t, s, "k"), proposal("k")
	f, err := s.Claim(t.Context(), p)
	if err != nil || f.Won {
		t.Fatalf("the second claim: won %v, error %v", f.Won, err)
	}
	never := store.Lease{Key: p.Key, Owner: p.Owner, Fence: holder.Fence}
	if err := s.Settle(t.Context(), never, store.Settlement{State: store.Released, Attempt: 1}); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("error %v, want ErrLeaseLost", err)
	}
	if r := get(t, s, "k"); r.Lease() != holder.Lease() || r.State != store.Processing {
		t.Errorf("the record is %v, want the holder's claim", r.State)
	}
}

// A completion that arrives after the time to live removed the item makes it again,
// without the fields of its claim.
func TestSettle_ItemRemoved_MakesNone(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	r := claim(t, s, "k")
	_, err := dynamotest.Client(dynamotest.URL(t)).DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &s.table, Key: s.key(s.partition(r.Key))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context(), r.Lease(), completion("x")); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("error %v, want ErrLeaseLost", err)
	}
	if _, err := s.Get(t.Context(), r.Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after the completion: %v, want no record", err)
	}
}

// The item that a refused claim brings along is used without a comparison of the
// payload (powertools-lambda-typescript#2058, powertools-lambda-java#2260).
func TestGuard_OtherPayloadMeetsItem_RefusedInEveryState(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	g, err := semel.New(s, &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	run := func(key string, cents int, handler semel.Handler) error {
		_, err := g.Run(t.Context(), semel.Call{Operation: "op", Tenant: "t", Key: key, Payload: semel.JSON(cents)}, handler)
		return err
	}
	unwanted := func(context.Context, *semel.Execution) (store.Outcome, error) {
		t.Error("the handler ran with another payload")
		return store.Outcome{}, nil
	}
	for state, result := range map[string]error{"completed": nil, "failed": semel.Final(errors.New("no money")), "parked": errors.New("no answer")} {
		_ = run(state, 1, func(context.Context, *semel.Execution) (store.Outcome, error) {
			if err := run(state, 2, unwanted); !errors.Is(err, semel.ErrMismatch) {
				t.Errorf("in flight: error %v, want ErrMismatch", err)
			}
			return store.Outcome{Body: []byte("x")}, result
		})
		if err := run(state, 2, unwanted); !errors.Is(err, semel.ErrMismatch) {
			t.Errorf("%s: error %v, want ErrMismatch", state, err)
		}
	}
}
