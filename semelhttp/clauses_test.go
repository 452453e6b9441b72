package semelhttp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store/memstore"
)

// TestClauses_OfDraft07_Hold checks each clause of draft-ietf-httpapi-idempotency-key-header-07. The
// clause numbers are this project's. Client clauses are checked on the Transport.
func TestClauses_OfDraft07_Hold(t *testing.T) {
	const docs = "https://api.example.com/docs/idempotency"
	published := setup{options: semelhttp.Options{DocsURL: docs}}
	for _, c := range []struct{ clause, says string }{
		{"N1", "2.1 MUST: the key is a structured string"},
		{"N2", "2.2 MUST NOT: a client does not use a key for another payload"},
		{"N3", "2.2 MUST: the resource's owner defines uniqueness"},
		{"N4", "2.2 RECOMMENDED: UUIDs or the like"},
		{"N5", "2.3 MAY: keys expire by time"},
		{"N6", "2.3 SHOULD: the expiry is defined and published"},
		{"N7", "2.4 MAY: a fingerprint goes with the key"},
		{"N8", "2.5.1 SHOULD: the client sends a unique key in each request"},
		{"N9", "2.5.1 MAY: the client sends a key to a server that may ignore it"},
		{"N10", "2.5.2 MUST: the server publishes its rules"},
		{"N11", "2.5.2: the server manages the key's life"},
		{"N12", "2.5.2 SHOULD: key, fingerprint, enforcement for each request"},
		{"N13", "2.6 SHOULD: the first request is processed normally"},
		{"N14", "2.6 SHOULD: a repeated one gets the earlier result, success or error"},
		{"N15", "2.6 SHOULD: a concurrent one gets a conflict"},
		{"N16", "2.7 SHOULD: 400 and a link to the documentation without a key"},
		{"N17", "2.7 SHOULD: 422 for another payload"},
		{"N18", "2.7 SHOULD: 409 while the first is running"},
		{"N19", "2.7 MUST: a request that is not corrected fails again"},
		{"N20", "2.7 SHOULD: other statuses are as the resource documents them"},
		{"N21", "3: the field is named Idempotency-Key"},
		{"N22", "5: keys have a fixed format, and are validated before processing"},
		{"N23", "5 MAY: keys are looked up together with what only the server knows"},
	} {
		t.Run(c.clause+" "+c.says, func(t *testing.T) { clauses[c.clause](t, published, docs) })
	}
	if len(clauses) != 23 {
		t.Errorf("%d of 23 clauses have a test", len(clauses))
	}
}

// first sends one request with a Transport and returns the server's view of it.
func first(t *testing.T, ctx context.Context, o *semelhttp.TransportOptions, lines ...any) *scriptedServer {
	t.Helper()
	s := &scriptedServer{lines: lines, start: time.Now()}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://example.com/pay", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := newClient(t, s, o).Do(r); err == nil {
		_ = resp.Body.Close()
	}
	return s
}

func wantTitle(t *testing.T, a answer, status int, title, docs string) {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatal(err)
	}
	if a.StatusCode != status || p.Status != status || p.Title != title || !strings.HasPrefix(p.Type, docs) || p.Detail == "" ||
		a.Header.Get("Content-Type") != "application/problem+json" || a.Header.Get("Content-Language") != "en" ||
		a.Header.Get("Link") != "<"+docs+`>; rel="describedby"; type="text/html"` {
		t.Errorf("got %d %v %s", a.StatusCode, a.Header, a.body)
	}
}

var clauses = map[string]func(t *testing.T, s setup, docs string){
	"N1": func(t *testing.T, s setup, _ string) {
		s.options.Strict = true
		site := newSite(t, s, echo)
		site.want(site.post(`"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "hello"), 201, "you said hello")
		site.want(site.post(`"a \" \\ b"`, "hello"), 201, "you said hello")
		site.want(site.post(`8e03978e-40d5-43dd-bc93-6894a57f9324`, "hello"), 400, semelhttp.CodeKeyMalformed)
		if key := first(t, t.Context(), nil, "200").attempts[0].key[0]; !uuid.MatchString(key) {
			t.Errorf("the Transport sends %s", key)
		}
		if key := first(t, semelhttp.WithKey(t.Context(), `a"\b`), nil, "200").attempts[0].key[0]; key != `"a\"\\b"` {
			t.Errorf("the Transport sends %s", key)
		}
	},
	"N2": func(t *testing.T, _ setup, _ string) {
		s := first(t, t.Context(), &semelhttp.TransportOptions{Backoff: time.Millisecond}, "503")
		for _, a := range s.attempts {
			if a.body != "hello" || a.key[0] != s.attempts[0].key[0] {
				t.Errorf("an attempt has key %s, body %q", a.key, a.body)
			}
		}
	},
	"N3": func(t *testing.T, s setup, _ string) { // one key, two routes and two tenants: four operations
		site := newSite(t, s, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get(tenantHeader)) })
		for range 2 {
			for _, tenant := range []string{"bob", "eve"} {
				r := site.request(`"k"`, "hello")
				r.Header.Set(tenantHeader, tenant)
				site.want(site.do(r), 200, tenant)
			}
		}
		site.wantRuns(2)
	},
	"N4": func(t *testing.T, _ setup, _ string) {
		seen := map[string]bool{}
		for range 100 {
			key := first(t, t.Context(), nil, "200").attempts[0].key[0]
			if seen[key] || !uuid.MatchString(key) {
				t.Fatalf("key %s", key)
			}
			seen[key] = true
		}
	},
	"N5": expires,
	"N6": func(t *testing.T, s setup, docs string) {
		expires(t, s, docs)
		if a := newSite(t, s, echo).post("", "hello"); !strings.Contains(a.body, docs) {
			t.Errorf("no link to where it is published: %s", a.body)
		}
	},
	"N7": func(t *testing.T, s setup, _ string) {
		site := newSite(t, s, echo)
		site.post("k", "hello")
		site.want(site.post("k", "hellO"), 422, semelhttp.CodePayloadMismatch)
	},
	"N8": func(t *testing.T, _ setup, _ string) {
		if a, b := first(t, t.Context(), nil, "200"), first(t, t.Context(), nil, "200"); a.attempts[0].key[0] == b.attempts[0].key[0] {
			t.Error("two requests have one key")
		}
	},
	"N9": func(t *testing.T, _ setup, _ string) {
		if s := first(t, t.Context(), nil, "404"); len(s.attempts) != 1 || len(s.attempts[0].key) != 1 {
			t.Errorf("attempts are %v", s.attempts)
		}
	},
	"N10": func(t *testing.T, s setup, docs string) {
		site := newSite(t, s, echo)
		a := site.post("", "hello")
		if !strings.Contains(a.Header.Get("Link"), docs) || !strings.Contains(a.body, docs) {
			t.Errorf("no link to the documentation: %v %s", a.Header, a.body)
		}
	},
	"N11": expires,
	"N12": func(t *testing.T, s setup, _ string) {
		site := newSite(t, s, echo)
		site.want(site.post("", "hello"), 400, semelhttp.CodeKeyMissing)
		site.want(site.post("k", "hello"), 201, "you said hello")
		site.want(site.post("k", "other"), 422, semelhttp.CodePayloadMismatch)
		site.wantRuns(1)
	},
	"N13": func(t *testing.T, s setup, _ string) {
		site := newSite(t, s, echo)
		a := site.post("k", "hello")
		site.want(a, 201, "you said hello")
		if a.replayed() {
			t.Error("the first answer is marked as a replay")
		}
	},
	"N14": func(t *testing.T, s setup, _ string) {
		for _, status := range []int{201, 303, 404, 422} {
			site := newSite(t, s, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "answer")
			})
			site.want(site.post("k", "hello"), status, "answer")
			site.want(site.post("k", "hello"), status, "answer")
			site.wantRuns(1)
		}
	},
	"N15": outstanding,
	"N16": func(t *testing.T, s setup, docs string) {
		wantTitle(t, newSite(t, s, echo).post("", "hello"), 400, "Idempotency-Key is missing", docs)
	},
	"N17": func(t *testing.T, s setup, docs string) {
		site := newSite(t, s, echo)
		site.post("k", "hello")
		wantTitle(t, site.post("k", "other"), 422, "Idempotency-Key is already used", docs)
	},
	"N18": outstanding,
	"N19": func(t *testing.T, s setup, _ string) {
		site := newSite(t, s, echo)
		site.post("k", "hello")
		for range 3 {
			site.want(site.post("", "hello"), 400, semelhttp.CodeKeyMissing)
			site.want(site.post("k", "other"), 422, semelhttp.CodePayloadMismatch)
		}
		for _, line := range []string{"400", "422"} { // the Transport does not repeat a request that cannot succeed
			if s := first(t, t.Context(), nil, line); len(s.attempts) != 1 {
				t.Errorf("%s was tried %d times", line, len(s.attempts))
			}
		}
	},
	"N20": func(t *testing.T, _ setup, _ string) {
		o := &semelhttp.TransportOptions{Backoff: time.Millisecond}
		for line, attempts := range map[string]int{"401": 1, "403": 1, "500": 1, "429": 4, "502": 4, "503": 4, "504": 4} {
			if s := first(t, t.Context(), o, line); len(s.attempts) != attempts {
				t.Errorf("%s was tried %d times, want %d", line, len(s.attempts), attempts)
			}
		}
	},
	"N21": func(t *testing.T, s setup, _ string) {
		site := newSite(t, s, echo)
		r := site.request("", "hello")
		r.Header.Set("X-Idempotency-Key", "k")
		site.want(site.do(r), 400, semelhttp.CodeKeyMissing)
		r = site.request("", "hello")
		r.Header["idempotency-key"] = []string{"k"} // header names are case-insensitive
		site.want(site.do(r), 201, "you said hello")
	},
	"N22": func(t *testing.T, s setup, _ string) {
		site := newSite(t, s, echo)
		for _, key := range []string{"a b", "a,b", `"a", "b"`, `"a`, `""`, strings.Repeat("k", 256), "k\xfcy", "k\ty"} {
			site.want(site.post(key, "hello"), 400, semelhttp.CodeKeyMalformed)
		}
		r := site.request("a", "hello")
		r.Header.Add("Idempotency-Key", "a")
		site.want(site.do(r), 400, semelhttp.CodeKeyMalformed)
		site.wantRuns(0)
	},
	"N23": func(t *testing.T, s setup, _ string) {
		site := newSite(t, s, echo)
		site.post("k", "hello")
		r := site.request("k", "hello")
		r.Header.Set(tenantHeader, "eve")
		if a := site.do(r); a.replayed() {
			t.Error("a key of another tenant was found")
		}
	},
}

// expires checks that a key is kept for the Guard's Retention and is new after it.
func expires(t *testing.T, s setup, _ string) {
	begin := time.Now()
	var passed atomic.Int64
	s.store = memstore.New(&memstore.Options{Now: func() time.Time { return begin.Add(time.Duration(passed.Load())) }})
	s.guard = semel.Options{Retention: time.Hour}
	site := newSite(t, s, echo)
	site.post("k", "hello")
	passed.Store(int64(time.Hour - time.Second))
	if a := site.post("k", "hello"); !a.replayed() {
		t.Error("the key expired too early")
	}
	passed.Add(int64(2 * time.Second))
	if a := site.post("k", "another"); a.replayed() || a.StatusCode != 201 {
		t.Errorf("after its retention the key got %d %s", a.StatusCode, a.body)
	}
	site.wantRuns(2)
}

// outstanding checks that a duplicate of a running request gets a conflict with
// Retry-After.
func outstanding(t *testing.T, s setup, docs string) {
	running, release := make(chan struct{}), make(chan struct{})
	site := newSite(t, s, func(w http.ResponseWriter, r *http.Request) {
		close(running)
		<-release
		w.WriteHeader(200)
	})
	done := make(chan answer, 1)
	go func() { done <- site.post("k", "hello") }()
	receive(t, running, "the first run")
	a := site.post("k", "hello")
	wantTitle(t, a, 409, "A request is outstanding for this Idempotency-Key", docs)
	if v := a.Header.Get("Retry-After"); v != "1" {
		t.Errorf("Retry-After is %q, want a short time, because the run has just begun", v)
	}
	site.want(site.post("k", "other"), 422, semelhttp.CodePayloadMismatch)
	close(release)
	site.want(receive(t, done, "the first answer"), 200, "")
}
