package semellambda_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semellambda"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

var errBoom = errors.New("boom")

type order struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

func newGuard(t *testing.T, st store.Store, o *semel.Options) *semel.Guard {
	t.Helper()
	if st == nil {
		st = memstore.New(nil)
	}
	g, err := semel.New(st, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func must[T any](t *testing.T) func(v T, err error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("the error is %v; want %v", err, want)
	}
}

func wantEqual[T comparable](t *testing.T, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}

// quiet is Options for records, without log lines.
func quiet[T any]() semellambda.Options[T] {
	return semellambda.Options[T]{Operation: "charge", Tenant: semellambda.Shared[T], Report: func(context.Context, string, error) {}}
}
