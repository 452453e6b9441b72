package dynamostore

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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

// A partition of the application has more items than a page, with sort keys after those of
// the records. The pass goes on after the last item of a page, and not after the last record.
func TestSweep_LargePartitionOfApplication_PassEnds(t *testing.T) {
	t.Parallel()
	client, table, partition, sort := dynamotest.Client(dynamotest.URL(t)), newTable(), "PK", "SK"
	text := types.ScalarAttributeTypeS
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest, KeySchema: keySchema(partition, sort),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &partition, AttributeType: text}, {AttributeName: &sort, AttributeType: text}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const items = 2*smallPage + 20
	for i := range items {
		it := item{partition: textOf("customer \"1\""), sort: textOf(fmt.Sprintf("shipment %03d", i))}
		if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
			t.Fatal(err)
		}
	}
	c := newStandingClock()
	s := openOn(t, client, table, &Options{PartitionKey: partition, SortKey: sort, SweepExpired: true, IndexShards: 1, now: c.read, noSkew: true})
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		complete(t, s, fmt.Sprint("done ", i), "x")
	}
	c.advance(2 * time.Hour)
	const steps = 5 // of up to 10 pages of 50 items
	deleted, from := 0, store.Cursor("")
	for range steps {
		res, err := s.Sweep(t.Context(), from, 10)
		if err != nil {
			t.Fatal(err)
		}
		deleted += res.Deleted
		if from = res.Next; from == "" {
			break
		}
	}
	if from != "" || deleted != 5 {
		t.Errorf("after %d steps the cursor is %q and %d records are deleted; want the end, and 5", steps, from, deleted)
	}
}

func TestSweep_CursorOfAnotherForm_IsError(t *testing.T) {
	t.Parallel()
	s := openOn(t, answering(500, ""), "t", nil)
	for _, from := range []store.Cursor{"x", "1 2", "1 2 semel#k", `1 2 "k"`, `-1 2 "k" ""`, `1 2 "k" "s" 3`} {
		if _, err := s.Sweep(t.Context(), from, 1); err == nil || !strings.Contains(err.Error(), "cursor is") {
			t.Errorf("cursor %q: %v", from, err)
		}
	}
}
