package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

// The table of docs/outages.md, as far as the error alone decides.
func TestAffects_Error_HasSmallestExtentOfItsMarks(t *testing.T) {
	plain := errors.New("connection refused")
	part := func(err error) error {
		return fmt.Errorf("shard %q: %w", "a", store.WithExtent(err, store.ExtentPart))
	}
	call := store.WithExtent(plain, store.ExtentCall)
	for name, c := range map[string]struct {
		err  error
		want store.Extent
	}{
		"an unknown error":            {plain, store.ExtentStore},
		"a time limit":                {context.DeadlineExceeded, store.ExtentStore},
		"the caller of an outage":     {&semel.Error{Reason: semel.ErrUnavailable, Cause: plain}, store.ExtentStore},
		"a part":                      {part(plain), store.ExtentPart},
		"the caller of a part":        {&semel.Error{Reason: semel.ErrUnavailable, Cause: part(plain)}, store.ExtentPart},
		"a part of a part":            {part(part(plain)), store.ExtentPart},
		"a call":                      {call, store.ExtentCall},
		"a call in a part":            {part(call), store.ExtentCall},
		"a part in a call":            {store.WithExtent(part(plain), store.ExtentCall), store.ExtentCall},
		"a mark that says nothing":    {store.WithExtent(part(plain), store.ExtentStore), store.ExtentPart},
		"no record":                   {part(store.ErrNotFound), store.ExtentCall},
		"a lost lease":                {store.ErrLeaseLost, store.ExtentCall},
		"an outcome that is too long": {fmt.Errorf("settle: %w", store.ErrTooLarge), store.ExtentCall},
		"an unreadable record":        {&semel.Error{Reason: store.ErrCorrupt}, store.ExtentCall},
		"a changed record":            {store.ErrChanged, store.ExtentCall},
	} {
		if got := store.Affects(c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestWithExtent_KeepsTextAndChain(t *testing.T) {
	plain := errors.New("connection refused")
	if err := store.WithExtent(plain, store.ExtentPart); err.Error() != plain.Error() || !errors.Is(err, plain) {
		t.Errorf("%v", err)
	}
	if err := store.WithExtent(nil, store.ExtentCall); err != nil {
		t.Errorf("nil became %v", err)
	}
}

// answers is a store with a given answer to Get.
type answers struct {
	store.Store
	err error
}

func (a answers) Get(context.Context, store.Key) (store.Found, error) { return store.Found{}, a.err }

type pings struct {
	store.Store
	err error
}

func (p pings) Ping(context.Context) error { return p.err }

type wraps struct{ store.Store }

func (w wraps) Unwrap() store.Store { return w.Store }

func TestPing_StoreAnswers_IsNil(t *testing.T) {
	down := errors.New("connection refused")
	for name, c := range map[string]struct {
		st   store.Store
		want error
	}{
		"it answers":                  {memstore.New(nil), nil},
		"it is down":                  {answers{err: down}, down},
		"it answers with a record":    {answers{err: nil}, nil},
		"it answers: unreadable":      {answers{err: store.ErrCorrupt}, nil},
		"it has parts":                {wraps{pings{answers{err: down}, nil}}, nil},
		"it has parts, all are down":  {wraps{pings{memstore.New(nil), down}}, down},
		"this call's own mishap only": {answers{err: store.WithExtent(down, store.ExtentCall)}, nil},
		"the part of the key is down": {answers{err: store.WithExtent(down, store.ExtentPart)}, down},
	} {
		if err := store.Ping(t.Context(), c.st); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
