package deliver

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
)

// An answer that is not understood can have a cookie in the part that net/http quotes. The text
// goes to the log, the record and the dead letter.
func TestServe_AnswerNotUnderstood_IsNotQuoted(t *testing.T) {
	b, e := newBroker(), newEndpoint(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nSet-Cookie; session=canary\r\n\r\n")
		_ = c.Close()
	})
	b.publish("k", "", `{"n":1}`)
	var out bytes.Buffer
	s := serve(t, nil, b, e.URL+"/events", func(o *Options) {
		o.OnDoubt = semel.Retry
		o.Log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Sending.Log = o.Log
	})
	b.settled(t)
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	letters := b.letters(driver.DeadLetter)
	if len(letters) != 1 || strings.Contains(letters[0], "canary") || !strings.Contains(letters[0], "malformed MIME header: missing colon") {
		t.Errorf("the letters are %q", letters)
	}
	if text := out.String(); strings.Contains(text, "canary") || !strings.Contains(text, "nobody knows whether a message took effect") {
		t.Errorf("the log says %s", text)
	}
}
