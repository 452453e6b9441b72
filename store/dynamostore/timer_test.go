package dynamostore

import (
	"errors"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// The timers that are due are found by one query of the index, and never by a scan,
// however many other timers there are.
func TestDueTimers_ReadsNoOtherTimers(t *testing.T) {
	t.Parallel()
	direct := openNew(t, nil)
	m := &meter{requests: map[string]int{}}
	o := direct.opt
	o.IndexShards = 1
	s := openOn(t, dynamotest.Client(dynamotest.URL(t), m.add), direct.table, &o)
	set := func(from, to int, wait time.Duration) {
		t.Helper()
		for i := from; i < to; i++ {
			key := store.Key{Operation: "order##saga", Value: strconv.Itoa(i)}
			if _, err := s.SetTimer(t.Context(), key, store.Owner{}, store.Owner{1}, wait); err != nil {
				t.Fatal(err)
			}
		}
	}
	set(0, 3, 0)
	for _, others := range []int{0, 50} {
		set(3, 3+others, time.Hour)
		m.take()
		due, _, err := s.DueTimers(t.Context(), "order##saga", 0, 100)
		if err != nil || len(due) != 3 {
			t.Fatalf("%d timers are due, error %v; want 3", len(due), err)
		}
		requests, _, _ := m.take()
		if want := map[string]int{"Query": 1, "BatchGetItem": 1}; !maps.Equal(requests, want) {
			t.Errorf("beside %d other timers the requests are %v, want %v", others, requests, want)
		}
	}
}

// A timer that cannot be read does not stop the other sagas of its name, also if it is the
// first of a small page.
func TestDueTimers_OneUnreadable_OthersAreFound(t *testing.T) {
	t.Parallel()
	s := openNew(t, &Options{IndexShards: 1})
	for i, value := range []string{"0", "1", "2"} {
		if set, err := s.SetTimer(t.Context(), testKey(value), store.Owner{}, store.Owner{1}, time.Duration(i)*time.Second); err != nil || !set {
			t.Fatalf("set %v, error %v", set, err)
		}
	}
	e := newExpression()
	change := "SET " + e.equal(attrOwner, textOf("short"))
	if _, err := s.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: s.timerKey(testKey("0")), UpdateExpression: &change, ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	}); err != nil {
		t.Fatal(err)
	}
	due, _, err := s.DueTimers(t.Context(), testKey("").Operation, time.Hour, 2)
	if len(due) != 2 || !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("%d timers, error %v; want 2 and ErrCorrupt", len(due), err)
	}
}
