package admin

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serve starts a server that refuses each request, except those of /stream.
func serve(t *testing.T, bodies time.Duration) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.Config = server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			_, _ = io.Copy(io.Discard, r.Body)
			for range 10 {
				<-time.After(bodies / 4)
				_, _ = fmt.Fprintln(w, "line")
				_ = http.NewResponseController(w).Flush()
				if r.Context().Err() != nil {
					return
				}
			}
			return
		}
		http.Error(w, "log in", http.StatusUnauthorized)
	}), slog.New(slog.DiscardHandler), bodies)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// A client without a log-in must not hold a connection by a body that does not come.
func TestServer_BodyDoesNotCome_ConnectionEnds(t *testing.T) {
	t.Parallel()
	s := serve(t, 200*time.Millisecond)
	for _, head := range []string{"POST / HTTP/1.1\r\nContent-Length: 10", "GET / HTTP/1.1\r\nContent-Length: 10", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked"} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, head+"\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(answer), " 401 ") {
			t.Errorf("%q: answer %q, error %v; want 401 and the end of the connection", head, answer, err)
		}
	}
}

// The limit is for the body only.
func TestServer_LongAnswerAfterBody_IsNotCut(t *testing.T) {
	t.Parallel()
	s := serve(t, 200*time.Millisecond)
	for _, body := range []string{"", "a form"} {
		res, err := http.Post(s.URL+"/stream", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if lines := strings.Count(string(answer), "line"); err != nil || lines != 10 {
			t.Errorf("body %q: %d lines, error %v; want 10", body, lines, err)
		}
	}
}
