package storeurl_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

func TestDynamo_InvalidURL_ErrorSaysWhat(t *testing.T) {
	for text, want := range map[string]string{
		"dynamodb://":                    "dynamodb://TABLE",
		"dynamodb://u:secret@t":          "AWS_PROFILE",
		"dynamodb://t/x":                 "dynamodb://TABLE",
		"dynamodb://t?index-shards=many": "a number",
		"dynamodb://t?index-shards=-1":   "IndexShards",
		"dynamodb://t?max-skew=2":        "2s",
		"dynamodb://t?sweep-expired=x":   "true or false",
		"dynamodb://t?ttl=expires":       "TTL",
		"dynamodb://t?nonsense=1":        "partition-key",
	} {
		_, err := storeurl.Parse(text, "--store")
		if err == nil || !input.Is(err) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestDynamo_MigrateAndOpen_KeepRecord(t *testing.T) {
	endpoint := dynamotest.URL(t)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	text := "dynamodb://storeurl?region=us-east-1&prefix=a%23&partition-key=PK&sort-key=SK&endpoint=" + url.QueryEscape(endpoint)
	u := parse(t, text)
	if u.String() != parse(t, u.String()).String() || !u.InDynamo() || u.CheckPark() != nil {
		t.Errorf("shown as %q", u)
	}
	if _, err := u.OpenExisting(t.Context()); !errors.Is(err, dynamostore.ErrNoTable) {
		t.Errorf("a table that does not exist: %v, want ErrNoTable", err)
	}
	for range 2 {
		if ok, err := u.MigrateTable(t.Context()); !ok || err != nil {
			t.Fatalf("migrate: %v, error %v", ok, err)
		}
	}
	p := store.Proposal{Key: store.Key{Operation: "o", Value: "k"}, State: store.Processing, Policy: store.Park, Owner: store.Owner{1}, Lease: time.Minute}
	for _, open := range []func() (storeurl.Handle, error){
		func() (storeurl.Handle, error) { return u.Open(t.Context()) }, func() (storeurl.Handle, error) { return u.OpenExisting(t.Context()) },
	} {
		h, err := open()
		if err != nil {
			t.Fatal(err)
		}
		if f, err := h.Claim(t.Context(), p); err != nil || !f.Won {
			t.Errorf("got %+v, %v", f, err)
		}
		if _, ok := store.As[store.Lister](h); !ok {
			t.Error("it cannot be searched")
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
