package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// half sends a part of a request, and gives the connection for the rest.
func (s *stage) half(request string) (net.Conn, *bufio.Reader) {
	s.t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		s.t.Fatal(err)
	}
	return c, bufio.NewReader(c)
}

const postHalf = "POST /pay HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 10\r\n"

// A client that stops sending gets 408, and holds no claim.
func TestBody_ClientStopsSending_Refused(t *testing.T) {
	for name, c := range map[string]struct {
		doc, request string
		status       int
		code         string
	}{
		"in its body":          {"", postHalf + "\r\nbo", 408, "body_timeout"},
		"before its body":      {"", postHalf + "\r\n", 408, "body_timeout"},
		"in chunks":            {"", "POST /pay HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n", 408, "body_timeout"},
		"with a key in it":     {"require-key: false\nkey-from: [id]\n", "POST /pay HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{", 408, "body_timeout"},
		"without a key":        {"require-key: true\n", "POST /pay HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nbo", 400, "key_missing"},
		"with a wrong path":    {"rules: [{match: /a}]\n", "POST /a/../b HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nbo", 400, "bad_path"},
		"to switch protocols":  {"", postHalf + "Connection: upgrade\r\nUpgrade: websocket\r\n\r\nbo", 400, "upgrade_refused"},
		"for a 100 that comes": {"", postHalf + "Expect: 100-continue\r\n\r\n", 100, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, created(), "scope: single\nbody-timeout: 300ms\n"+c.doc)
			_, answers := s.half(c.request)
			res, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode == http.StatusContinue {
				c.status, c.code = 408, "body_timeout"
				if res, err = http.ReadResponse(answers, nil); err != nil {
					t.Fatal(err)
				}
			}
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != c.status || !strings.Contains(string(body), `"code":"`+c.code) || !res.Close {
				t.Errorf("%s, close %v, %s, %v", res.Status, res.Close, body, err)
			}
			if _, err := answers.ReadByte(); err == nil {
				t.Error("the connection goes on")
			}
			if n := s.backend.count(); n != 0 || s.state(store.Key{Operation: "http", Value: "k"}) != 0 {
				t.Errorf("the service was asked %d times", n)
			}
			if r := s.pay("k"); r.status != http.StatusCreated && c.doc == "" {
				t.Errorf("again: %+v", r)
			}
		})
	}
}

// The limit counts pauses, not the whole upload.
func TestBody_SlowUpload_NotCutOff(t *testing.T) {
	const limit, parts, tries = time.Second, 15, 5
	s := play(t, created(), "scope: single\nbody-timeout: 1s\n")
	upload := func(key string) (longest time.Duration, err error) {
		c, answers := s.half(fmt.Sprintf("POST /pay HTTP/1.1\r\nHost: a\r\nIdempotency-Key: %s\r\nContent-Length: %d\r\n\r\n", key, parts))
		last := time.Now()
		for range parts {
			<-time.After(limit / 10)
			_, err = io.WriteString(c, ".")
			longest, last = max(longest, time.Since(last)), time.Now()
			if err != nil {
				return longest, err
			}
		}
		res, err := http.ReadResponse(answers, nil)
		if err == nil && res.StatusCode != http.StatusCreated {
			err = errors.New(res.Status)
		}
		return longest, err
	}
	for try := range tries {
		longest, err := upload(fmt.Sprint("k", try))
		if err == nil {
			return
		}
		if longest < limit/2 || try == tries-1 {
			t.Fatalf("%v; the longest pause was %v", err, longest)
		}
		t.Logf("%v after a pause of %v: the machine stood still, so this shows nothing", err, longest)
	}
}

// After the body the server reads on, to notice a client that hangs up. This
// read has no limit, so that a slow service does not end the connection.
func TestBody_SlowUpstream_NoBodyTimeout(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(600 * time.Millisecond):
			w.WriteHeader(http.StatusCreated)
		case <-r.Context().Done():
		}
	}, "scope: single\nbody-timeout: 200ms\nrequire-key: false\nkey-from: [id]\n")
	c, answers := s.half("")
	for _, key := range []string{"", "Idempotency-Key: k1\r\n", "Idempotency-Key: k2\r\n"} {
		if _, err := fmt.Fprintf(c, "POST /pay HTTP/1.1\r\nHost: a\r\n%sContent-Length: 2\r\n\r\n{}", key); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(answers, nil)
		if err != nil || res.StatusCode != http.StatusCreated {
			t.Fatalf("%q: %+v, %v", key, res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
	}
}

// Trailers after a body with a pause limit reach the upstream.
func TestBody_UnannouncedTrailers_Kept(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	_, answers := s.half("POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 42\r\n\r\n")
	if res, err := http.ReadResponse(answers, nil); err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := s.backend.seen[0].Trailer; len(got) != 1 || got.Get("X-Sum") != "42" {
		t.Errorf("the service got the trailers %v", got)
	}
}
