package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// wire is a service that keeps the bytes of each request, and answers with given bytes.
type wire struct {
	net.Listener
	answer []byte
	got    chan []byte
}

func newWire(t *testing.T) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, got: make(chan []byte, 1)}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.serve(c)
		}
	}()
	return w
}

// serve reads one request to its end, as net/http does, and answers it.
func (w *wire) serve(c net.Conn) {
	defer c.Close()
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(c, &raw))
	if r, err := http.ReadRequest(in); err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	w.got <- bytes.Clone(raw.Bytes())
	_, _ = c.Write(w.answer)
}

// exchange sends raw bytes to a proxy, and returns the bytes of its answer.
func exchange(t *testing.T, addr, request string) []byte {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// An observing proxy sends the service and the client the same bytes as a proxy that
// looks at no keys.
func TestObserve_AnyRequest_ChangesNoByte(t *testing.T) {
	head := func(method, path string, lines ...string) string {
		return method + " " + path + " HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n" + strings.Join(append(lines, "\r\n"), "\r\n")
	}
	post := func(body string, lines ...string) string {
		return strings.Replace(head("POST", "/pay?a=1", append(lines, fmt.Sprint("Content-Length: ", len(body)))...), "\r\n\r\n\r\n", "\r\n\r\n", 1) + body
	}
	large := strings.Repeat("0123456789abcdef", 20_000)
	requests := map[string]string{
		"a key":           post("a=1", "Idempotency-Key: k1", "X-Tenant: ann"),
		"again":           post("a=1", "Idempotency-Key: k1", "X-Tenant: ann"),
		"another payload": post("a=2", "Idempotency-Key: k1", "X-Tenant: ann"),
		"no key":          post("a=1", "X-Tenant: ann"),
		"no tenant":       post("a=1", "Idempotency-Key: k1"),
		"a malformed key": post("a=1", `Idempotency-Key: "open`, "X-Tenant: ann"),
		"two keys":        post("a=1", "Idempotency-Key: k1", "Idempotency-Key: k2", "X-Tenant: ann"),
		"a reserved key":  post("a=1", "Idempotency-Key: semel-fields:x", "X-Tenant: ann"),
		"an odd header":   post("a=1", "Idempotency-Key: k1", "X_Tenant: ann", "X-Tenant: ann"),
		"a hop by hop":    strings.Replace(post("a=1", "Idempotency-Key: k1", "X-Tenant: ann"), "Connection: close", "Connection: close, X-Tenant", 1),
		"an odd path":     strings.Replace(post("a=1", "Idempotency-Key: k1", "X-Tenant: ann"), "/pay?a=1", "/a/../pay//", 1),
		"a large body":    post(large, "Idempotency-Key: k3", "X-Tenant: ann"),
		"too large":       post(large+large, "Idempotency-Key: k4", "X-Tenant: ann"),
		"no body":         post("", "Idempotency-Key: k5", "X-Tenant: ann"),
		"own headers":     post("a", "Idempotency-Key: k6", "X-Tenant: ann", "Semel-Fence: 7", "X-Forwarded-For: 1.2.3.4"),
		"chunks": strings.Replace(head("POST", "/pay", "Idempotency-Key: k7", "X-Tenant: ann", "Transfer-Encoding: chunked", "Trailer: X-Sum"), "\r\n\r\n\r\n", "\r\n\r\n", 1) +
			"3\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\n",
		"a read": strings.Replace(head("GET", "/page", "Idempotency-Key: k1"), "\r\n\r\n\r\n", "\r\n\r\n", 1),
	}
	const date = "Date: Sat, 28 Nov 2026 10:00:00 GMT\r\nConnection: close\r\n"
	answers := map[string]string{
		"201":     "HTTP/1.1 201 Created\r\n" + date + "Content-Length: 2\r\nSet-Cookie: a=b\r\nLocation: /p/1\r\n\r\nok",
		"500":     "HTTP/1.1 500 Internal Server Error\r\n" + date + "Content-Length: 4\r\n\r\noops",
		"chunked": "HTTP/1.1 200 OK\r\n" + date + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n",
		"empty":   "HTTP/1.1 204 No Content\r\n" + date + "\r\n",
		"large":   "HTTP/1.1 200 OK\r\n" + date + fmt.Sprint("Content-Length: ", len(large)) + "\r\n\r\n" + large,
		"marked":  "HTTP/1.1 200 OK\r\n" + date + "Semel-Result: no-effect\r\nContent-Length: 2\r\n\r\nok",
		"cut":     "HTTP/1.1 200 OK\r\n" + date + "Content-Length: 20\r\n\r\nshort",
	}
	// A proxy that does not observe refuses these also without looking at keys.
	refused := map[string]bool{"a reserved key": true, "an odd header": true, "a hop by hop": true}
	service := newWire(t)
	const rest = "scope: header:X-Tenant\nmax-body: 400KiB\nmax-outcome: 100KiB\nrequire-key: true\n"
	at := "http://" + service.Addr().String()
	proxies := map[string]*stage{
		"observing": playAt(t, at, "observe: true\n"+rest+"rules: [{match: \"POST /pay\", on-doubt: park}]\n"),
		"keyless":   playAt(t, at, "scope: single\nmethods: [DELETE]\n"),
	}
	for what, request := range requests {
		for kind, answer := range answers {
			service.answer = []byte(answer)
			sent, received := map[string][]byte{}, map[string][]byte{}
			for name, s := range proxies {
				received[name] = exchange(t, s.Listener.Addr().String(), request)
				select {
				case sent[name] = <-service.got:
				default: // it was refused
				}
			}
			if refused[what] {
				if len(sent["observing"]) == 0 {
					t.Errorf("%s, %s: the service got nothing", what, kind)
				}
				continue
			}
			if a, b := sent["observing"], sent["keyless"]; !bytes.Equal(a, b) {
				t.Errorf("%s, %s: the service got\n%.600q\nand not\n%.600q", what, kind, a, b)
			}
			if a, b := received["observing"], received["keyless"]; !bytes.Equal(a, b) {
				t.Errorf("%s, %s: the client got\n%.600q\nand not\n%.600q", what, kind, a, b)
			}
			if what == "a key" && len(sent["observing"]) == 0 {
				t.Fatal("the service got nothing")
			}
		}
	}
	if n := proxies["observing"].proxy.Observed().Requests; n != uint64(len(requests)*len(answers)) {
		t.Errorf("%d requests were counted, want %d", n, len(requests)*len(answers))
	}
}
