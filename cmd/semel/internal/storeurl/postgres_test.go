package storeurl_test

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestPostgres_TwoSchemas_SeparateStores(t *testing.T) {
	at := pgtest.URL(t)
	mark := "?"
	if strings.Contains(at, "?") {
		mark = "&"
	}
	u, other := parse(t, at+mark+"semel-schema=storeurl+one"), parse(t, at+mark+"semel-schema=storeurl+two")
	if _, err := u.OpenExisting(t.Context()); err == nil {
		t.Error("it was there before it was made")
	}
	h, err := u.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	again, err := u.OpenExisting(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	o, err := other.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	p := store.Proposal{Key: store.Key{Operation: "o", Value: t.Name()}, State: store.Processing, Owner: store.Owner{1}, Lease: 1e9}
	if f, err := h.Claim(t.Context(), p); err != nil || !f.Won {
		t.Errorf("got %+v, %v", f, err)
	}
	if _, err := again.Get(t.Context(), p.Key); err != nil {
		t.Error(err)
	}
	if f, err := o.Claim(t.Context(), p); err != nil || !f.Won {
		t.Errorf("the other schema has it, too: %+v, %v", f, err)
	}
}

func TestPostgres_UnknownOption_Refused(t *testing.T) {
	for _, option := range []string{"semel-scheme=x", "semel-notify=perhaps"} {
		_, err := storeurl.Parse("postgres://db/app?"+option, "--store")
		if !input.Is(err) || !strings.Contains(err.Error(), "semel-schema") {
			t.Errorf("%s: %v", option, err)
		}
	}
}

func TestPostgres_PartitionsAndNotify_FromURL(t *testing.T) {
	at := pgtest.URL(t)
	mark := "?"
	if strings.Contains(at, "?") {
		mark = "&"
	}
	u := parse(t, at+mark+"semel-schema=storeurl+parts&semel-notify=on")
	made, ok := u.Partitioned(2)
	if !ok {
		t.Fatal("PostgreSQL has no partitions")
	}
	h, err := made.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	w, ok := store.As[store.Waiter](h)
	if !ok {
		t.Fatal("the store has no Wait")
	}
	if err := w.Wait(t.Context(), store.Seen{Key: store.Key{Operation: "o", Tenant: "t", Value: "absent"}}); err != nil {
		t.Errorf("Wait: %v", err)
	}
	found, err := u.OpenExisting(t.Context()) // doctor
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	if c, ok := store.As[store.Checker](found); ok {
		if err := c.Check(t.Context()); err != nil && strings.Contains(err.Error(), "partition") {
			t.Errorf("Check: %v", err)
		}
	}
	if other, _ := u.Partitioned(3); other.String() != u.String() {
		t.Errorf("%s is not %s", other, u)
	} else if _, err := other.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "has 2 partitions") {
		t.Errorf("opened with 3: %v", err)
	}
	if _, ok := parse(t, "memory:").Partitioned(2); ok {
		t.Error("a store in memory has partitions")
	}
}
