package storeurl_test

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

func TestASchemaIsAStoreOfItsOwn(t *testing.T) {
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

func TestAnOptionThatPostgreSQLDoesNotHaveIsRefused(t *testing.T) {
	_, err := storeurl.Parse("postgres://db/app?semel-scheme=x", "--store")
	if !input.Is(err) || !strings.Contains(err.Error(), "semel-schema") {
		t.Errorf("got %v", err)
	}
}
