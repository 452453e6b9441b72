package dynamostore

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store"
)

func TestDecode_EachState_ReturnsRecord(t *testing.T) {
	t.Parallel()
	s := openOn(t, answering(500, ""), "t", nil)
	now := store.Time(1_795_176_000_000_000)
	for st := store.Started; st <= store.Unknown; st++ {
		p := proposal("k\xff")
		p.Key.Operation, p.State, p.Policy, p.Error = "bytes \xff", st, store.Park, "failed"
		p.Outcome = store.Outcome{Code: 201, Body: make([]byte, 2000), Header: []store.Header{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}}
		r := p.Insert(now, 0)
		r.FormerOwners = []store.FormerOwner{{Owner: p.Owner, Holder: "\xff", Fence: 7, Attempt: 2, State: store.Processing, Next: st, Ended: now}}
		outcome, err := s.packOutcome(t.Context(), &r)
		if err != nil {
			t.Fatal(err)
		}
		it := s.encode(&r, outcome)
		if got, err := decodeFor(p.Key, it); err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%v: error %v\n got %+v\nwant %+v", st, err, got, r)
		}
		if _, err := decodeFor(testKey("other"), it); err == nil {
			t.Errorf("%v: the record of another key is no error", st)
		}
	}
}

// An unreadable item is an error for every method, and never counts as absent.
func TestGet_UnreadableItem_IsErrorNotAbsence(t *testing.T) {
	t.Parallel()
	s := openNew(t, nil)
	broken := map[string]types.AttributeValue{
		attrFormat: numberOf(store.Format + 1), attrState: textOf("paused"), attrPolicy: numberOf(1), attrOwner: textOf("short"),
		attrFence: textOf("7"), attrCreated: textOf("now"), attrOutcome: &types.AttributeValueMemberB{Value: []byte{9}},
	}
	for attribute, value := range broken {
		r := complete(t, s, attribute, "x")
		it, err := s.read(t.Context(), r.Key)
		if err != nil {
			t.Fatal(err)
		}
		it[attribute] = value
		if _, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.table, Item: it}); err != nil {
			t.Fatal(err)
		}
		for method, err := range map[string]error{
			"Get":    second(s.Get(t.Context(), r.Key)),
			"Claim":  second(s.Claim(t.Context(), proposal(attribute))),
			"Swap":   second(s.Swap(t.Context(), store.Seen{Key: r.Key, State: store.Unknown, Until: time.Unix(1, 0)}, proposal(attribute))),
			"Settle": s.Settle(t.Context(), store.Lease{Key: r.Key}, completion("y")),
			"Steps":  second(s.Steps(t.Context(), r.Lease())),
			"Tx":     second(s.NewTx().Claim(t.Context(), proposal(attribute))),
		} {
			if !errors.Is(err, store.ErrCorrupt) || store.Affects(err) != store.ExtentCall {
				t.Errorf("%s of an item with a wrong %q: error %v, want ErrCorrupt", method, attribute, err)
			}
		}
	}
	n := 0
	for _, err := range s.List(t.Context(), store.Filter{}) {
		if errors.Is(err, store.ErrCorrupt) {
			n++
		}
	}
	if n != len(broken) {
		t.Errorf("List reported %d unreadable items, want %d", n, len(broken))
	}
}
