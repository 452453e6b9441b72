package upstream_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
)

// The errors of net/http quote a line that it does not understand, and that can be a cookie or
// the rest of somebody else's answer. Logs and records must not have it.
func TestFailure_AnswerNotUnderstood_IsNotQuoted(t *testing.T) {
	for name, answer := range map[string]string{
		"no colon":    "HTTP/1.1 200 OK\r\nSet-Cookie; session=canary\r\n\r\n",
		"status line": "canary\r\n\r\n",
		"status":      "HTTP/1.1 canary OK\r\n\r\n",
		"length":      "HTTP/1.1 200 OK\r\nContent-Length: canary\r\n\r\n",
		"encoding":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: canary\r\n\r\n",
		"trailer":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\ncanary\r\n\r\n",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
					_, _ = io.WriteString(c, answer)
				}
				_ = c.Close()
			}
		}()
		for _, key := range []string{"k", ""} {
			var log logged
			f := newFront(t, "http://"+l.Addr().String(), &semel.Options{OnDoubt: semel.Park}, time.Minute, func(o *upstream.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			res := f.send(t, "POST", "/", key, "")
			_, _ = io.ReadAll(res.Body) // without a key, a part of the answer may be sent
			if text := log.String(); strings.Contains(text, "canary") || !strings.Contains(text, "level=WARN") {
				t.Errorf("%s, key %q: the log says %s", name, key, text)
			}
			if key == "" {
				continue
			}
			r, err := f.guard.Get(t.Context(), semel.Call{Operation: operation, Tenant: semel.Shared, Key: key})
			if err != nil || strings.Contains(r.LastError, "canary") || !strings.Contains(r.LastError, "upstream_lost") {
				t.Errorf("%s: the record says %q, %v", name, r.LastError, err)
			}
		}
	}
}
