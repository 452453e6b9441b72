package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestRules_SeveralMatch_MostSpecificApplies(t *testing.T) {
	s := play(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, `
scope: single
rules:
  - match: POST /pay
    on-doubt: park
  - match: POST /pay/{id}/capture
    keep-5xx: true
  - match: /free/
    pass-through: true
`)
	for path, want := range map[string]string{
		"/pay": "outcome_unknown", "/pay/": "outcome_unknown", "/PAY": "outcome_unknown", "/pay/7/capture": "kept", "/other": "again", "/free/x": "again", "/free": "again",
	} {
		before := s.backend.count()
		s.send("POST", path, "", "Idempotency-Key", "k"+path)
		r := s.send("POST", path, "", "Idempotency-Key", "k"+path)
		got := "again"
		switch asked := s.backend.count() - before; {
		case r.replayed() && asked == 1:
			got = "kept"
		case strings.Contains(r.body, "outcome_unknown") && asked == 1:
			got = "outcome_unknown"
		case asked != 2:
			got = "neither"
		}
		if got != want {
			t.Errorf("%s: %s, want %s: %+v", path, got, want, r)
		}
	}
}

func TestRules_PathNotNormal_Refused(t *testing.T) {
	s := play(t, created(), "scope: single\nrules: [{match: /free/, pass-through: true}]\n")
	for _, path := range []string{"//pay", "/free/../pay", "/free//pay", "/./pay", "/free/..", "/free/%2e%2e/pay", "/free%2F..%2Fpay", "/pay/."} {
		res := raw(t, s.URL, "POST "+path+" HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n")
		if res.StatusCode != 400 {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	for _, path := range []string{"/", "/free/", "/a/.b/..c/d..", "/a%2Fb", "/a/"} {
		res := raw(t, s.URL, "POST "+path+" HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k"+path+"\r\nContent-Length: 0\r\n\r\n")
		if res.StatusCode != 201 {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	plain := play(t, created(), "scope: single\n")
	if res := raw(t, plain.URL, "POST //a/../b HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n"); res.StatusCode != 201 || plain.backend.seen[0].RequestURI != "//a/../b" {
		t.Errorf("without rules: %s", res.Status)
	}
}

func TestUnprotected_Answer_Streams(t *testing.T) {
	gotPart, goOn := make(chan struct{}), make(chan struct{})
	s := play(t, nil, "scope: single\nrules: [{match: /free/, pass-through: true}]\n")
	s.backend.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, 5)
		if _, err := io.ReadFull(r.Body, buf); err != nil {
			t.Error(err)
		}
		gotPart <- struct{}{}
		rest, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, "part ")
		_ = http.NewResponseController(w).Flush()
		<-goOn
		_, _ = w.Write(rest)
	})
	for _, c := range []struct{ method, path string }{{"PUT", "/pay"}, {"POST", "/free/x"}} {
		body, feed := io.Pipe()
		req, err := http.NewRequest(c.method, s.URL+c.path, body)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = io.WriteString(feed, "first")
			<-gotPart // before the body has ended
			_, _ = io.WriteString(feed, "second")
			_ = feed.Close()
		}()
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		part := make([]byte, 5)
		if _, err := io.ReadFull(res.Body, part); err != nil || string(part) != "part " {
			t.Errorf("%s %s: got %q, %v", c.method, c.path, part, err)
		}
		goOn <- struct{}{} // after a part of the answer has come
		if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "second" {
			t.Errorf("%s %s: got %q, %v", c.method, c.path, rest, err)
		}
		_ = res.Body.Close()
	}
}

func TestRules_NoStore_AnswerNotKept(t *testing.T) {
	s := play(t, created(), `
scope: single
rules:
  - match: POST /secret
    no-store: true
    require-key: true
  - match: PUT /put
    methods: [PUT]
    require-key: true
  - match: POST /small
    require-key: false
`)
	s.send("POST", "/secret", "", "Idempotency-Key", "k1")
	if r := s.send("POST", "/secret", "", "Idempotency-Key", "k1"); r.status != 201 || r.body != "" || r.header.Get("Semel-Outcome") != "not-kept" {
		t.Errorf("no-store: %+v", r)
	}
	s.send("PUT", "/put", "", "Idempotency-Key", "k2")
	if r := s.send("PUT", "/put", "", "Idempotency-Key", "k2"); !r.replayed() {
		t.Errorf("methods: %+v", r)
	}
	if r := s.send("PUT", "/put", ""); r.status != 400 {
		t.Errorf("PUT without a key: %+v", r)
	}
	if r := s.send("POST", "/small", ""); r.status != 201 {
		t.Errorf("require-key false: %+v", r)
	}
}

func TestKeyFrom_NoKeySent_DerivedFromFields(t *testing.T) {
	s := play(t, created(), `
scope: single
rules:
  - match: POST /strict
    key-from: [order.id]
    require-key: true
  - match: POST /lax
    key-from: [order.id]
    require-key: false
`)
	for _, path := range []string{"/strict", "/lax"} {
		first := s.send("POST", path, `{"order":{"id":"`+path+`1"}}`)
		if again := s.send("POST", path, `{"order":{"id":"`+path+`1"}}`); first.status != 201 || !again.replayed() || again.body != first.body {
			t.Errorf("%s: %+v, %+v", path, first, again)
		}
		if other := s.send("POST", path, `{"order":{"id":"`+path+`1"},"more":1}`); other.status != 422 {
			t.Errorf("%s, another body: %+v", path, other)
		}
		if other := s.send("POST", path, `{"order":{"id":"`+path+`2"}}`); other.status != 201 || other.replayed() {
			t.Errorf("%s, another order: %+v", path, other)
		}
		if r := s.send("POST", path, `{"order":{"id":1.5}}`); r.status != 400 || !strings.Contains(r.body, "payload_malformed") {
			t.Errorf("%s, a fraction: %+v", path, r)
		}
	}
	if r := s.send("POST", "/strict", `{}`); r.status != 400 || !strings.Contains(r.body, "key_missing") {
		t.Errorf("strict, no field: %+v", r)
	}
	if r := s.send("POST", "/lax", `{}`); r.status != 201 {
		t.Errorf("lax, no field: %+v", r)
	}
	for _, r := range s.backend.seen {
		if r.Header.Get("Idempotency-Key") != "" {
			t.Errorf("the service got a key that no client sent: %v", r.Header)
		}
	}
}

func TestRules_Wait_DuplicateWaits(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{}, 2)
	answer := created()
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-release
		answer(w, r)
	}, "scope: single\nrules: [{match: POST /wait, wait: 30s}]\n")
	for path, wait := range map[string]bool{"/wait": true, "/now": false} {
		first, second := make(chan reply, 1), make(chan reply, 1)
		go func() { first <- s.send("POST", path, "", "Idempotency-Key", "k"+path) }()
		<-entered
		go func() { second <- s.send("POST", path, "", "Idempotency-Key", "k"+path) }()
		if wait {
			select {
			case r := <-second:
				t.Errorf("%s: it did not wait: %+v", path, r)
			case <-time.After(50 * time.Millisecond):
			}
			release <- struct{}{}
			if r := <-second; r.status != 201 || !r.replayed() {
				t.Errorf("%s: %+v", path, r)
			}
		} else {
			if r := <-second; r.status != 409 || r.header.Get("Retry-After") == "" {
				t.Errorf("%s: %+v", path, r)
			}
			release <- struct{}{}
		}
		<-first
	}
}

func TestBody_OverLimit_413(t *testing.T) {
	s := play(t, created(), "scope: single\nmax-body: 4\n")
	if r := s.send("POST", "/", "12345", "Idempotency-Key", "k"); r.status != 413 || s.backend.count() != 0 {
		t.Errorf("%+v", r)
	}
	if r := s.send("POST", "/", "1234", "Idempotency-Key", "k"); r.status != 201 {
		t.Errorf("%+v", r)
	}
}
