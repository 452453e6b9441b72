package upstream_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/upstream"
)

// sendTrailers sends a chunked request with a trailer behind its body, as
// announced or not.
func sendTrailers(t *testing.T, f *front, key, body string, announced bool) {
	t.Helper()
	c, err := net.Dial("tcp", f.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	head := "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
	if announced {
		head += "Trailer: X-Sum, Semel-Fence\r\n"
	}
	if key != "" {
		head += "Idempotency-Key: " + key + "\r\n"
	}
	chunks := "0\r\n"
	if body != "" {
		chunks = "4\r\n" + body + "\r\n" + chunks
	}
	if _, err := io.WriteString(c, head+"\r\n"+chunks+"X-Sum: 42\r\nSemel-Fence: 999\r\nx_tenant: eve\r\nContent-Length: 1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("key %q, body %q: %+v, %v", key, body, res, err)
	}
}

// The upstream gets the trailers of a request, for example a checksum, with and
// without a key. A trailer with the name of a protected header is dropped.
func TestRequestTrailers_ReachUpstream(t *testing.T) {
	var body string
	var trailer http.Header
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		doc, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		body, trailer = string(doc), r.Trailer.Clone()
	})
	f := newFront(t, b.URL, nil, time.Minute, func(o *upstream.Options) { o.Protected = map[string]bool{"X-Tenant": true} })
	for _, key := range []string{"", "k"} {
		for _, want := range []string{"body", ""} {
			for _, announced := range []bool{true, false} {
				body, trailer = "none", nil
				k := key
				if key != "" {
					k += strings.Repeat("x", len(want)) + map[bool]string{true: "a", false: "b"}[announced]
				}
				sendTrailers(t, f, k, want, announced)
				if body != want || trailer.Get("X-Sum") != "42" || len(trailer) != 1 {
					t.Errorf("key %q, announced %v: the upstream got %q, trailers %v", k, announced, body, trailer)
				}
			}
		}
	}
}
