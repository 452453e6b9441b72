package console_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/console"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// An answer that repeats a client's JSON is deeply nested. Its indentation grows by the square
// of its depth. It is smaller than each limit.
func TestRecords_DeeplyNestedAnswers_PageIsSmall(t *testing.T) {
	const depth, records = 4_000, 5 // encoding/json takes 10,000, and a list has 100
	s := siteOver(t, memstore.New(nil), console.Options{ShowBodies: true})
	guard, err := semel.New(s.store, nil)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
	for _, key := range []string{"a", "b", "c", "d", "e"}[:records] {
		call := semel.Call{Operation: "http", Tenant: "ann", Key: key, Payload: semel.NoPayload()}
		if _, err := guard.Run(t.Context(), call, func(context.Context, *semel.Execution) (store.Outcome, error) {
			return store.Outcome{Code: 200, Body: body}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"records", "record?operation=http&tenant=ann&key=a"} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := time.Now()
		a := s.get(path)
		runtime.ReadMemStats(&after)
		allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%d records with an answer of %d bytes: GET %s has %d bytes, took %v and allocated %d MiB", records, len(body), path, len(a.body), time.Since(begin).Round(time.Millisecond), allocated)
		if len(a.body) > 1<<20 || allocated > 16 {
			t.Errorf("GET %s: too much", path)
		}
	}
}
