package dynamostore

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// Sweep leaves expired records to DynamoDB's time to live unless it is told otherwise,
// and reads only the index.
func TestSweep_Default_ReadsIndexOnly(t *testing.T) {
	t.Parallel()
	c := newStandingClock()
	s := openNew(t, &Options{IndexShards: 2, now: c.read, noSkew: true})
	for i := range 5 {
		complete(t, s, fmt.Sprint("done ", i), "x")
		claim(t, s, fmt.Sprint("held ", i))
	}
	c.advance(2 * time.Hour)
	m := &meter{requests: map[string]int{}}
	counted := openOn(t, dynamotest.Client(dynamotest.URL(t), m.add, countScans(m)), s.table, &s.opt)
	res, err := counted.Sweep(t.Context(), "", 100)
	if err != nil || res.Deleted != 0 || len(res.Lapsed) != 5 || res.Next != "" {
		t.Errorf("sweep: %d deleted, %d lapsed, next %q, error %v; want 5 lapsed", res.Deleted, len(res.Lapsed), res.Next, err)
	}
	f := store.Filter{States: []store.State{store.Started, store.Processing, store.Unknown}}
	n := 0
	for _, err := range counted.List(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if requests, _, _ := m.take(); n != 5 || requests["Scan"] != 0 || requests["Query"] == 0 {
		t.Errorf("%d records of 5, requests %v; want no Scan", n, requests)
	}
}

func countScans(m *meter) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		next := o.HTTPClient
		if next == nil {
			next = http.DefaultClient
		}
		o.HTTPClient = doFunc(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("X-Amz-Target") == "DynamoDB_20120810.Scan" {
				m.mu.Lock()
				m.requests["Scan"]++
				m.mu.Unlock()
			}
			return next.Do(req)
		})
	}
}

// A sweep has found an expired record, and the key begins a new life before the
// deletion arrives: the new record stays.
func TestSweep_RecordRestartedBeforeDeletion_Stays(t *testing.T) {
	t.Parallel()
	c := newStandingClock()
	direct := openNew(t, &Options{IndexShards: 1, SweepExpired: true, now: c.read, noSkew: true})
	was := complete(t, direct, "k", "x")
	c.advance(2 * time.Hour)
	h := newHolding("DeleteItem")
	s := openOn(t, h.client(t), direct.table, &direct.opt)
	h.hold.Store(true)
	done := make(chan error, 1)
	go func() {
		_, err := s.Sweep(t.Context(), "", 10)
		done <- err
	}()
	<-h.held
	p := proposal("k")
	p.Restart = true
	if f, err := direct.Swap(t.Context(), was.Seen(), p); err != nil || !f.Won {
		t.Fatalf("restart: won %v, error %v", f.Won, err)
	}
	close(h.release)
	if err := <-done; err != nil {
		t.Errorf("sweep: %v", err)
	}
	if r := get(t, direct, "k"); r.Owner != p.Owner {
		t.Error("the record of the new life is another's")
	}
}
