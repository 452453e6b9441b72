package admin

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The server writes the line before it closes the connection.
func TestServer_HandlerPanics_IsLoggedAsError(t *testing.T) {
	for name, c := range map[string]struct {
		value any
		lines []string // in the log at level info
		http2 bool
	}{
		"over HTTP/2":              {"boom", []string{"level=ERROR", `client=127.0.0.1:`, `panic="boom\n`}, true},
		"a text":                   {"the map is nil: 7", []string{"level=ERROR", `client=127.0.0.1:`, `the map is nil: 7\n`, "errorlog_test.go"}, false},
		"the end of a connection":  {http.ErrAbortHandler, nil, false},
		"an address in the panic":  {"dial [::1]:80: refused", []string{"level=ERROR", "dial [::1]:80: refused"}, false},
		"a text like another line": {"http: TLS handshake error from nobody", []string{"level=ERROR", "http: TLS handshake error from nobody"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			s := httptest.NewUnstartedServer(nil)
			s.Config = Server(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(c.value) }), slog.New(slog.NewTextHandler(&b, nil)))
			if s.EnableHTTP2 = c.http2; c.http2 {
				s.StartTLS()
			} else {
				s.Start()
			}
			if res, err := s.Client().Get(s.URL); err == nil {
				res.Body.Close()
				t.Errorf("the client got %d", res.StatusCode)
			}
			s.Close() // waits for the connection
			if c.lines == nil && b.Len() > 0 {
				t.Errorf("the log has: %s", &b)
			}
			for _, want := range c.lines {
				if !strings.Contains(b.String(), want) {
					t.Errorf("no %s in: %s", want, &b)
				}
			}
		})
	}
}

// A stranger can cause such a line with each connection.
func TestErrorLog_OtherLine_IsForDebugging(t *testing.T) {
	for level, want := range map[slog.Level]int{slog.LevelInfo: 0, slog.LevelDebug: 1} {
		var b bytes.Buffer
		ErrorLog(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level}))).Printf("http: TLS handshake error from %v: %v\n", &net.TCPAddr{Port: 7}, "EOF")
		if got := strings.Count(b.String(), `level=DEBUG msg="http: TLS handshake error from :7: EOF"`); got != want || want == 0 && b.Len() > 0 {
			t.Errorf("at level %v: %q", level, b.String())
		}
	}
}
