package dynamostore

import (
	"maps"
	"strconv"
	"testing"
	"time"

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
