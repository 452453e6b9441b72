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
// claims or takes over, for semel inspect.
type namedStore struct{ store.Store }

// Unwrap lets store.As find the optional interfaces.
func (s namedStore) Unwrap() store.Store { return s.Store }

// Claim implements store.Store.
func (s namedStore) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	p.Holder = named(ctx, p.Holder)
	return s.Store.Claim(ctx, p)
}

// Swap implements store.Store.
func (s namedStore) Swap(ctx context.Context, seen store.Seen, p store.Proposal) (store.Found, error) {
	p.Holder = named(ctx, p.Holder)
	return s.Store.Swap(ctx, seen, p)
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
