package config

import (
	"net/http"
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/httpname"
)

// keyHeaders checks that a key can come under each name, and reach the service.
func (r *resolver) keyHeaders(names []string) {
	seen := map[string]bool{}
	for _, name := range names {
		same := http.CanonicalHeaderKey(name)
		switch {
		case !httpname.IsToken(name):
			r.bad("key-headers", name, "is no header name")
		case seen[same]:
			r.bad("key-headers", name, "is listed twice")
		case slices.Contains(ofConnections, same):
			r.bad("key-headers", name, "belongs to the connection, and can hold no key")
		case strings.HasPrefix(same, "Semel-"):
			r.bad("key-headers", name, "is removed on the way to the service, as all Semel- headers are")
		}
		seen[same] = true
	}
	if len(names) == 0 {
		r.bad("key-headers", "", "is empty; leave it out for Idempotency-Key")
	}
}

// ofConnections are headers that package http takes for itself, or that end with
// a connection.
var ofConnections = []string{
	"Host", "Connection", "Content-Length", "Transfer-Encoding", "Trailer", "Te", "Upgrade", "Keep-Alive", "Proxy-Connection", "Expect",
}
