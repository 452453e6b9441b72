package semelhttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/semelhttp"
)

// droppingServer answers the first request on each connection. At the second, it
// performs the effect and drops the connection.
type droppingServer struct {
	url     string
	effects atomic.Int64 // of requests with a key
}

func newDroppingServer(t *testing.T) *droppingServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &droppingServer{url: "http://" + l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
	return s
}

func (s *droppingServer) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for n := 1; ; n++ {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if r.Header.Get("Idempotency-Key") != "" {
			s.effects.Add(1)
			if n > 1 {
				return
			}
		}
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

// bodies are request bodies of each kind.
var bodies = map[string]func() io.Reader{
	"nil":      func() io.Reader { return nil },
	"none":     func() io.Reader { return http.NoBody },
	"fixed":    func() io.Reader { return strings.NewReader("hello") },
	"streamed": func() io.Reader { return io.MultiReader(strings.NewReader("hel"), strings.NewReader("lo")) },
}

// warm leaves an idle connection in the client's pool.
func warm(t *testing.T, c *http.Client, url string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	readAnswer(resp)
}

func keyed(t *testing.T, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "k")
	return r
}

// TestNoResend_Unused_NetHTTPSendsTwice fails if net/http no longer sends
// twice; then NoResend is not needed any more.
func TestNoResend_Unused_NetHTTPSendsTwice(t *testing.T) {
	s := newDroppingServer(t)
	c := &http.Client{Transport: &http.Transport{}}
	warm(t, c, s.url)
	resp, err := c.Do(keyed(t, s.url, nil))
	if err != nil {
		t.Fatal(err)
	}
	readAnswer(resp)
	if n := s.effects.Load(); n != 2 {
		t.Errorf("net/http sent the request %d times; if it is 1 now, NoResend may not be needed any more", n)
	}
}

func TestNoResend_ConnectionBreaks_SendsOnce(t *testing.T) {
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			s := newDroppingServer(t)
			c := &http.Client{Transport: &http.Transport{}}
			warm(t, c, s.url)
			r := keyed(t, s.url, body())
			semelhttp.NoResend(r)
			if resp, err := c.Do(r); err == nil {
				t.Errorf("got %d, but the connection died", resp.StatusCode)
				_ = resp.Body.Close()
			}
			if n := s.effects.Load(); n != 1 {
				t.Errorf("the server saw %d requests", n)
			}
		})
	}
}

func TestNoResend_ReverseProxy_SendsOnce(t *testing.T) {
	for name, body := range bodies {
		for _, guarded := range []bool{true, false} {
			t.Run(fmt.Sprint(name, guarded), func(t *testing.T) {
				s := newDroppingServer(t)
				target, err := url.Parse(s.url)
				if err != nil {
					t.Fatal(err)
				}
				proxy := httptest.NewServer(&httputil.ReverseProxy{
					ErrorLog:  discardLog,
					Transport: &http.Transport{},
					Rewrite: func(p *httputil.ProxyRequest) {
						p.SetURL(target)
						if guarded {
							semelhttp.NoResend(p.Out)
						}
					},
				})
				defer proxy.Close()
				warm(t, proxy.Client(), proxy.URL)
				resp, err := proxy.Client().Do(keyed(t, proxy.URL, body()))
				if err != nil {
					t.Fatal(err)
				}
				a := readAnswer(resp)
				if guarded && (a.StatusCode != 502 || s.effects.Load() != 1) {
					t.Errorf("got %d after %d effects", a.StatusCode, s.effects.Load())
				}
				if unsafe := name == "nil" || name == "none"; !guarded && unsafe && (a.StatusCode != 200 || s.effects.Load() != 2) {
					t.Errorf("without NoResend: got %d after %d effects; has net/http changed?", a.StatusCode, s.effects.Load())
				}
			})
		}
	}
}

func TestNoResend_Request_SameBytesOnWire(t *testing.T) {
	for _, method := range []string{"POST", "PATCH", "PUT", "DELETE", "GET"} {
		for name, body := range bodies {
			if method == "GET" && name != "nil" {
				continue
			}
			t.Run(method+" "+name, func(t *testing.T) {
				var got [2]string
				for i := range got {
					r := keyed(t, "http://example.com/pay", body())
					r.Method = method
					if i == 1 {
						semelhttp.NoResend(r)
					}
					got[i] = onTheWire(t, r)
				}
				want := got[0]
				if method == "DELETE" && (name == "nil" || name == "none") {
					want = strings.Replace(want, "\r\n\r\n", "\r\ncontent-length: 0\r\n\r\n", 1) // harmless
				}
				if canonicalHead(got[1]) != canonicalHead(want) {
					t.Errorf("with NoResend:\n%s\nwithout:\n%s", got[1], want)
				}
			})
		}
	}
}

// canonicalHead sorts the headers and writes them in lower case.
func canonicalHead(s string) string {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(s)))
	if err != nil {
		return err.Error()
	}
	b, err := io.ReadAll(r.Body)
	return fmt.Sprint(r.Method, r.URL, r.Header, r.ContentLength, r.TransferEncoding, string(b), err, strings.Count(strings.ToLower(s), "content-length"))
}

// onTheWire returns the bytes that http.Transport sends.
func onTheWire(t *testing.T, r *http.Request) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sent := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		var b strings.Builder
		if req, err := http.ReadRequest(bufio.NewReader(io.TeeReader(c, &b))); err == nil {
			_, _ = io.Copy(io.Discard, req.Body)
		}
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		sent <- b.String()
	}()
	tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return net.Dial("tcp", l.Addr().String())
	}}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return receive(t, sent, "the request")
}

func TestNoResend_HTTP2_SendsSameRequest(t *testing.T) {
	var lengths []int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.ProtoMajor != 2 {
			t.Errorf("%s: %v", r.Proto, err)
		}
		lengths = append(lengths, int64(len(b)))
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	for _, name := range []string{"nil", "fixed", "streamed"} {
		r := keyed(t, srv.URL, bodies[name]())
		semelhttp.NoResend(r)
		resp, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		readAnswer(resp)
	}
	if fmt.Sprint(lengths) != "[0 5 5]" {
		t.Errorf("the server read %v bytes", lengths)
	}
}
