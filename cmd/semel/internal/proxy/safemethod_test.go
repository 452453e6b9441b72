package proxy_test

import (
	"net/http"
	"testing"
)

// Some services change data on GET, so a user can protect GET. http.Transport
// sends a GET again if a reused connection breaks; the proxy must prevent that.
func TestProtectedGet_ConnectionBreaks_SentOnce(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "DELETE"} {
		for _, body := range []string{"", "body"} {
			s := play(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/warm" {
					return
				}
				if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
					_ = c.Close()
				}
			}, "scope: single\non-doubt: park\nrequire-key: false\nmethods: ["+method+"]\n")
			s.send("POST", "/warm", "")
			if r := s.send(method, "/pay", body, "Idempotency-Key", "k"); r.status != http.StatusBadGateway {
				t.Errorf("%s: %+v", method, r)
			}
			if n := s.backend.count(); n != 2 {
				t.Errorf("%s %q: the service was asked %d times, and once to warm up", method, body, n-1)
			}
		}
	}
}

func TestProtectedGet_ArrivesUnchanged(t *testing.T) {
	s := play(t, created(), "scope: single\nmethods: [GET, HEAD, OPTIONS, DELETE]\n")
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE"} {
		if r := s.send(method, "/pay", "", "Idempotency-Key", "k"+method); r.status != http.StatusCreated {
			t.Errorf("%s: %+v", method, r)
		}
		r := s.backend.seen[s.backend.count()-1]
		if r.Method != method || r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
			t.Errorf("%s: the service got %s, length %d, %q", method, r.Method, r.ContentLength, r.TransferEncoding)
		}
	}
}
