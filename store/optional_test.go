package store_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

func TestFilter_EachField_Selects(t *testing.T) {
	r := recordIn(store.Unknown) // updated at noon
	now := noon.Add(time.Minute)
	for name, c := range map[string]struct {
		f    store.Filter
		want bool
	}{
		"nothing":             {store.Filter{}, true},
		"the operation":       {store.Filter{Operation: "op"}, true},
		"another operation":   {store.Filter{Operation: "o"}, false},
		"the tenant":          {store.Filter{Tenant: "t"}, true},
		"another tenant":      {store.Filter{Tenant: "T"}, false},
		"the state":           {store.Filter{States: []store.State{store.Unknown}}, true},
		"one of two states":   {store.Filter{States: []store.State{store.Failed, store.Unknown}}, true},
		"another state":       {store.Filter{States: []store.State{store.Failed}}, false},
		"no state":            {store.Filter{States: []store.State{}}, true},
		"idle for less":       {store.Filter{Idle: time.Minute - 1}, true},
		"idle for as long":    {store.Filter{Idle: time.Minute}, true},
		"idle for longer":     {store.Filter{Idle: time.Minute + 1}, false},
		"a limit":             {store.Filter{Limit: 1}, true},
		"all":                 {store.Filter{Operation: "op", Tenant: "t", States: []store.State{store.Unknown}, Idle: time.Second}, true},
		"all but one":         {store.Filter{Operation: "op", Tenant: "u", States: []store.State{store.Unknown}, Idle: time.Second}, false},
		"operation, no match": {store.Filter{Operation: "x", States: []store.State{store.Unknown}}, false},
	} {
		if got := c.f.Match(&r, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	shared := recordIn(store.Unknown)
	shared.Key.Tenant = ""
	if f := (store.Filter{Tenant: "t"}); f.Match(&shared, now) {
		t.Error("a record without a tenant matches a tenant")
	}
}

// plain is a store without optional interfaces.
type plain struct{ store.Store }

// lister is a store.Lister.
type lister struct{ plain }

func (lister) List(context.Context, store.Filter) iter.Seq2[store.Found, error] { return nil }

// wrapper is a store around an inner store.
type wrapper struct {
	plain
	inner store.Store
}

func (w wrapper) Unwrap() store.Store { return w.inner }

// listing is a wrapper that is a store.Lister itself.
type listing struct{ wrapper }

func (listing) List(context.Context, store.Filter) iter.Seq2[store.Found, error] { return nil }

func TestAs_Wrappers_FindsFirst(t *testing.T) {
	inner := lister{}
	for name, c := range map[string]struct{ st, want store.Store }{
		"no store":               {nil, nil},
		"a plain store":          {plain{}, nil},
		"a lister":               {inner, inner},
		"a wrapped lister":       {wrapper{inner: inner}, inner},
		"a lister wrapped twice": {wrapper{inner: wrapper{inner: inner}}, inner},
		"a wrapper around nil":   {wrapper{}, nil},
		"a wrapped plain store":  {wrapper{inner: plain{}}, nil},
		"a listing wrapper":      {listing{wrapper{inner: inner}}, listing{wrapper{inner: inner}}},
	} {
		got, ok := store.As[store.Lister](c.st)
		if ok != (c.want != nil) || ok && any(got) != any(c.want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, ok, c.want)
		}
		if _, ok := store.As[store.Waiter](c.st); ok {
			t.Errorf("%s: found a Waiter", name)
		}
	}
	if got, ok := store.As[lister](wrapper{inner: inner}); !ok || got != inner {
		t.Errorf("As of a concrete type: got %v, %v; want the inner store", got, ok)
	}
}
