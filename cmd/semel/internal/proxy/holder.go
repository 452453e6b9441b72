package proxy

import (
	"context"

	"github.com/semel-go/semel/cmd/semel/internal/limit"
	"github.com/semel-go/semel/store"
)

// namedStore writes the method and the path of a request into the record that it
// claims, for semel inspect.
type namedStore struct{ store.Store }

// Unwrap lets store.As find the optional interfaces.
func (s namedStore) Unwrap() store.Store { return s.Store }

// Claim implements store.Store.
func (s namedStore) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	if v := limit.FromContext(ctx); v != nil && v.Request != nil {
		r := v.Request
		p.Holder += " " + r.Method + " " + shortPath(r.URL.EscapedPath())
	}
	return s.Store.Claim(ctx, p)
}

// shortPath cuts a path to a length that records can hold. The query is not shown,
// because it can contain secrets.
func shortPath(path string) string {
	const most = 120
	if len(path) > most {
		return path[:most] + "…"
	}
	return path
}
