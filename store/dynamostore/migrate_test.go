package dynamostore

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/erase"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

// Migrate makes the table, repeats without harm, adds the index to a table of the
// application, and Check names what is missing.
func TestMigrate_TableOfTheApplication_GetsTheIndex(t *testing.T) {
	t.Parallel()
	client := dynamotest.Client(dynamotest.URL(t))
	table := newTable()
	partition, sort := "PK", "SK"
	text := types.ScalarAttributeTypeS
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: &table, BillingMode: types.BillingModePayPerRequest, KeySchema: keySchema(partition, sort),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: &partition, AttributeType: text}, {AttributeName: &sort, AttributeType: text}},
	})
	if err != nil {
		t.Fatal(err)
	}
	other := item{partition: textOf("customer#1"), sort: textOf("profile"), attrExpires: numberOf(1)}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: other}); err != nil {
		t.Fatal(err)
	}
	o := &Options{PartitionKey: partition, SortKey: sort, SweepExpired: true, IndexShards: 1, TTL: "expires_at"}
	s := openOn(t, client, table, o)
	if err := s.Check(t.Context()); !errors.Is(err, ErrUnsafe) {
		t.Errorf("Check of a table without the index: %v, want ErrUnsafe", err)
	}
	for range 2 {
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	neighbor := *o
	neighbor.Prefix = "neighbor#"
	beside := openOn(t, client, table, &neighbor)
	for _, st := range []*Store{s, beside} {
		complete(t, st, "k", st.opt.Prefix)
		r := claim(t, st, "held")
		if err := st.Settle(t.Context(), r.Lease(), store.Settlement{State: store.Unknown, Attempt: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []store.Filter{{}, {States: []store.State{store.Unknown}}} {
		n := 0
		for _, err := range s.List(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if want := 2 - len(f.States); n != want {
			t.Errorf("List(%+v) gave %d records, want %d", f, n, want)
		}
	}
	if _, err := s.Sweep(t.Context(), "", 100); err != nil {
		t.Fatal(err)
	}
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &table, Key: item{partition: other[partition], sort: other[sort]}, ConsistentRead: aws.Bool(true),
	})
	if err != nil || len(out.Item) != len(other) {
		t.Errorf("the application's item is %v, error %v", out, err)
	}
	wrong := *o
	wrong.TTL = "other"
	if err := openOn(t, client, table, &wrong).Migrate(t.Context()); err == nil {
		t.Error("Migrate with another time to live attribute is no error")
	}
	wrong = *o
	wrong.SortKey = ""
	if err := openOn(t, client, table, &wrong).Check(t.Context()); !errors.Is(err, ErrUnsafe) {
		t.Errorf("Check with a wrong key: %v, want ErrUnsafe", err)
	}
}

// A prefix may begin with another one.
func TestPrefix_BeginsAnother_StoresSeeNothingOfEachOther(t *testing.T) {
	t.Parallel()
	c := newStandingClock()
	shop := openNew(t, &Options{Prefix: "shop", IndexShards: 1, SweepExpired: true, now: c.read, noSkew: true})
	staging := openAgain(t, shop, &Options{Prefix: "shop-staging", IndexShards: 1, SweepExpired: true, now: c.read, noSkew: true})
	complete(t, staging, "k", "answer of staging")
	for f, err := range shop.List(t.Context(), store.Filter{}) {
		t.Errorf("the list of shop has %q of shop-staging, error %v", f.Record.Outcome.Body, err)
	}
	c.advance(2 * time.Hour) // the record has expired
	if r, err := erase.Run(t.Context(), shop, erase.Scope{Tenant: "acme"}, nil); err != nil || r.Erased != 0 {
		t.Errorf("an erasure in shop reports %+v, error %v; want nothing", r, err)
	}
	if res, err := shop.Sweep(t.Context(), "", 10); err != nil || res.Deleted != 0 || res.Next != "" {
		t.Errorf("a sweep of shop deletes %d records, error %v; want none", res.Deleted, err)
	}
	get(t, staging, "k")
	if res, err := staging.Sweep(t.Context(), "", 10); err != nil || res.Deleted != 1 {
		t.Errorf("a sweep of shop-staging deletes %d records, error %v; want its own", res.Deleted, err)
	}
}

// Two processes start at the same time, and both find a table without a time to live. AWS
// refuses the second change.
func TestMigrate_AnotherProcessWasFaster_IsDone(t *testing.T) {
	t.Parallel()
	direct := dynamotest.Client(dynamotest.URL(t))
	client := dynamotest.Client(dynamotest.URL(t), func(o *dynamodb.Options) {
		o.HTTPClient = doFunc(func(req *http.Request) (*http.Response, error) {
			reply, err := http.DefaultClient.Do(req)
			if err == nil && strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".UpdateTimeToLive") {
				_ = reply.Body.Close()
				reply.StatusCode, reply.ContentLength = http.StatusBadRequest, -1
				reply.Header.Del("Content-Length")
				reply.Header.Del("X-Amz-Crc32")
				reply.Body = io.NopCloser(strings.NewReader(`{"__type":"com.amazon.coral.validate#ValidationException","message":"TimeToLive is already enabled"}`))
			}
			return reply, err
		})
	})
	table := newTable()
	if err := openOn(t, client, table, nil).Migrate(t.Context()); err != nil {
		t.Errorf("error %v", err)
	}
	if has, err := openOn(t, direct, table, nil).hasTimeToLive(t.Context()); err != nil || !has {
		t.Errorf("the table has its time to live: %v, %v", has, err)
	}
}
