package proxy

import (
	"context"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/limit"
	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// namedStore writes the method and the path of a request into the record that it
// claims or takes over, for semel inspect. It tells the request's visit the size of the answer
// that it finds.
type namedStore struct{ store.Store }

// Unwrap lets store.As find the optional interfaces.
func (s namedStore) Unwrap() store.Store { return s.Store }

// Claim implements store.Store.
func (s namedStore) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	p.Holder = named(ctx, p.Holder)
	f, err := s.Store.Claim(ctx, p)
	return found(ctx, f), err
}

// Get implements store.Store.
func (s namedStore) Get(ctx context.Context, k store.Key) (store.Found, error) {
	f, err := s.Store.Get(ctx, k)
	return found(ctx, f), err
}

// Swap implements store.Store.
func (s namedStore) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	p.Holder = named(ctx, p.Holder)
	f, err := s.Store.Swap(ctx, seen, p)
	return found(ctx, f), err
}

// found keeps the size of an answer that a request has found.
func found(ctx context.Context, f store.Found) store.Found {
	if v := limit.FromContext(ctx); v != nil {
		v.Found.Store(int64(len(f.Record.Outcome.Body)))
	}
	return f
}

// named adds the request of the context to a holder. A reconciler's holder stays as it is,
// because it is recognised by its end.
func named(ctx context.Context, holder string) string {
	v := limit.FromContext(ctx)
	if v == nil || v.Request == nil || strings.HasSuffix(holder, protocol.ReconcilerSuffix) {
		return holder
	}
	return holder + " " + input.Method(v.Request) + " " + input.Path(v.Request.URL)
}
