package input

import (
	"net/http"
	"strings"
)

// UnfitHeader returns the reason why a header cannot hold the name of a tenant or a user, or
// "". Such a name is part of records and logs.
func UnfitHeader(name string) string {
	if name == "" {
		return "this is no header name"
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return "this is no header name"
		}
	}
	switch http.CanonicalHeaderKey(name) {
	case "Authorization", "Cookie", "Proxy-Authorization":
		return "a credential is no name: it changes, and would be in records and logs"
	case "Host", "Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Keep-Alive", "Proxy-Connection", "Content-Length":
		return "this header belongs to the connection"
	case "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto":
		return "a proxy sets this header to an address or a protocol"
	}
	return ""
}
