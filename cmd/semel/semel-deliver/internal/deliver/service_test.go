package deliver

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consume/driver"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store/memstore"
)

// answers answers the n-th request of each key with the n-th status, and then with the
// last.
func answers(statuses ...int) func(w http.ResponseWriter, r *http.Request, n int) {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		switch status := statuses[min(n, len(statuses))-1]; status {
		case 0:
			panic(http.ErrAbortHandler) // silence
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			w.Header().Set("Retry-After", "0")
			fallthrough
		default:
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "because\nof me")
		}
	}
}

// Each class of answers, under both policies: how often the service is asked, and where
// the message ends.
func TestServe_EachAnswer_DecidesAboutTheMessage(t *testing.T) {
	const acked = ""
	for name, c := range map[string]struct {
		answer   func(w http.ResponseWriter, r *http.Request, n int)
		policy   semel.Policy
		requests int
		to       driver.Action
		letter   string
	}{
		"done":                        {answers(204), semel.Retry, 1, 0, acked},
		"final":                       {answers(422), semel.Retry, 1, driver.DeadLetter, "failed http_422 the service answered 422 Unprocessable Entity: it answers the request: because of me"},
		"final under park":            {answers(404), semel.Park, 1, driver.DeadLetter, "failed http_404 the service answered 404 Not Found: it answers the request: because of me"},
		"too many requests, then ok":  {answers(429, 429, 429, 429, 429, 200), semel.Retry, 6, 0, acked},
		"unavailable under park":      {answers(503, 503, 503, 503, 503, 200), semel.Park, 6, 0, acked},
		"refused":                     {answers(403), semel.Retry, 3, driver.DeadLetter, "failed http_403 refused 3 times; the last: the service answered 403 Forbidden: it asks for other credentials, a payment or a permission: because of me"},
		"refused under park, then ok": {answers(403, 415, 200), semel.Park, 3, 0, acked},
		"5xx, then ok":                {answers(500, 500, 200), semel.Retry, 3, 0, acked},
		"5xx too often":               {answers(500), semel.Retry, 3, driver.DeadLetter, "attempts_exhausted attempts_exhausted all 3 attempts failed; the last: the service answered 500 Internal Server Error: the server failed: because of me"},
		"5xx under park":              {answers(500), semel.Park, 1, driver.Quarantine, "outcome_unknown"},
		"silence, then ok":            {answers(0, 200), semel.Retry, 2, 0, acked},
		"silence under park":          {answers(0), semel.Park, 1, driver.Quarantine, "outcome_unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, e := newBroker(), newEndpoint(t, c.answer)
			b.publish("k", "", `{"n":1}`)
			serve(t, nil, b, e.URL+"/events", func(o *Options) { o.OnDoubt = c.policy })
			b.settled(t)
			var letters []string
			for _, to := range []driver.Action{driver.DeadLetter, driver.Quarantine} {
				letters = append(letters, b.letters(to)...)
			}
			if got := e.requests(); len(got) != c.requests {
				t.Errorf("%d requests, want %d", len(got), c.requests)
			}
			if c.letter == acked && len(letters) > 0 || c.letter != acked && (len(b.letters(c.to)) != 1 || !strings.HasPrefix(b.letters(c.to)[0], c.letter) || len(letters) != 1) {
				t.Errorf("copies %q, want %q", letters, c.letter)
			}
		})
	}
}

// The 409 of a service that parks is doubt, like its 500 before: the message may have had
// its effect, so the dead letter does not say that it failed.
func TestServe_ServiceParks_StaysInDoubt(t *testing.T) {
	guard, err := semel.New(memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	once, err := semelhttp.Middleware(guard, func(*http.Request) (string, error) { return semel.Shared, nil },
		&semelhttp.Options{Operation: func(*http.Request) string { return "events" }})
	if err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int64
	service := httptest.NewServer(once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		runs.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	})))
	defer service.Close()
	b := newBroker()
	b.publish("k", "", `{"n":1}`)
	serve(t, nil, b, service.URL+"/events", nil)
	b.settled(t)
	letters := b.letters(driver.DeadLetter)
	if want := "attempts_exhausted attempts_exhausted all 3 attempts failed; the last: the service answered 409 Conflict: the service does not know"; len(letters) != 1 || !strings.HasPrefix(letters[0], want) || runs.Load() != 1 {
		t.Errorf("copies %q after %d runs, want %q after one", letters, runs.Load(), want)
	}
}

// The request has the key, the fence, the attempt and the digest, and the attributes of
// the event.
func TestServe_Request_HasHeadersOfTheAttempt(t *testing.T) {
	b, e := newBroker(), newEndpoint(t, answers(500, 200))
	b.publish(`a "key"`, "ann", `{"n":1}`, "traceparent", "00-1", "x-account", "acme", "bad", "x")
	serve(t, nil, b, e.URL+"/events?q=1", func(o *Options) {
		o.Sending.Forward = []string{"traceparent", "x-account"}
		o.Sending.Header = http.Header{"Authorization": {"Bearer b"}}
		o.Calls.TenantHeader = "x-account"
	})
	b.settled(t)
	got := e.requests()
	if len(got) != 2 {
		t.Fatalf("%d requests", len(got))
	}
	for i, r := range got {
		for name, want := range map[string]string{
			"Idempotency-Key": `"a \"key\""`, "Semel-Attempt": fmt.Sprint(i + 1), "Ce-Id": "a%20%22key%22", "Ce-Source": "test:orders", "Ce-Type": "semel.message", "Ce-Partitionkey": "ann",
			"Ce-Specversion": "1.0", "Content-Type": "application/json", "Traceparent": "00-1", "X-Account": "acme", "Authorization": "Bearer b", "Bad": "", "User-Agent": "semel-deliver",
		} {
			if r.header.Get(name) != want {
				t.Errorf("request %d: %s is %q, want %q", i+1, name, r.header.Get(name), want)
			}
		}
		if r.body != `{"n":1}` || r.key != `a "key"` {
			t.Errorf("request %d: %+v", i+1, r)
		}
	}
	first, second := got[0].header, got[1].header
	if first.Get("Semel-Fence") >= second.Get("Semel-Fence") || first.Get("Semel-Request-Digest") != second.Get("Semel-Request-Digest") || first.Get("Semel-Request-Digest") == "" {
		t.Errorf("fences %s and %s, digests %s and %s", first.Get("Semel-Fence"), second.Get("Semel-Fence"), first.Get("Semel-Request-Digest"), second.Get("Semel-Request-Digest"))
	}
}

// A key that a quoted string cannot hold is replaced by one that stays the same.
func TestServe_KeyIsNotASCII_HeaderIsDerived(t *testing.T) {
	b, e := newBroker(), newEndpoint(t, answers(500, 200))
	b.publish("bestellung-ü", "", "x")
	serve(t, nil, b, e.URL, nil)
	b.settled(t)
	if got := e.requests(); len(got) != 2 || got[0].key != got[1].key || got[0].key == "" || strings.Contains(got[0].key, "ü") {
		t.Errorf("%+v", got)
	}
}

// Keys of Kafka are bytes: the serializers of Confluent begin them with 0x00, and the
// LongSerializer writes eight bytes. They order messages, but are no attribute.
func TestServe_KeyIsBytes_MessageIsSent(t *testing.T) {
	for name, c := range map[string]struct{ key, order string }{
		"order key of Confluent":      {"k", "\x00\x00\x00\x00\x01\x06ann"},
		"order key is a number":       {"k", "\x00\x00\x00\x00\x00\x00\x00\x2a"},
		"order key is not UTF-8":      {"k", "\x00\x00\x00\x00\x00\x00\x00\xc8"},
		"order key is large":          {"k", strings.Repeat("ü", 1<<19)},
		"idempotency key, not UTF-8":  {"order-\xff", ""},
		"both, in the same message":   {"order-\xff", "\x00\x2a"},
		"idempotency key with umlaut": {"order-ü", "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			b, e := newBroker(), newEndpoint(t, answers(500, 200))
			b.publish(c.key, c.order, `{"n":1}`)
			serve(t, nil, b, e.URL, nil)
			b.settled(t)
			got := e.requests()
			if len(got) != 2 || len(b.letters(driver.DeadLetter)) != 0 {
				t.Fatalf("%d requests, want 2; dead letters %q", len(got), b.letters(driver.DeadLetter))
			}
			if id := got[0].header.Get("Ce-Id"); id == "" || id != got[1].header.Get("Ce-Id") {
				t.Errorf("ids %q and %q", id, got[1].header.Get("Ce-Id"))
			}
		})
	}
}

func TestServe_Duplicates_OneRequest(t *testing.T) {
	b, e := newBroker(), newEndpoint(t, answers(200))
	for range 3 {
		for n := range 20 {
			b.publish(fmt.Sprint("k", n), "", "x")
		}
	}
	b.publish("k0", "", "another body")
	b.publish("", "", `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`, "content-type", "application/cloudevents+json")
	b.publish("", "", `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`, "content-type", "application/cloudevents+json")
	b.publish("", "", "no key")
	serve(t, nil, b, e.URL, nil)
	b.settled(t)
	if n := len(e.requests()); n != 21 {
		t.Errorf("%d requests for 21 keys", n)
	}
	letters := b.letters(driver.DeadLetter)
	slices.Sort(letters)
	if len(letters) != 2 || !strings.HasPrefix(letters[0], "no_key") || !strings.HasPrefix(letters[1], "payload_mismatch") {
		t.Errorf("dead letters %q", letters)
	}
}

// Two tenants may use one key. A message without its tenant is not sent.
func TestServe_ScopeHeader_KeysOfTenantsAreApart(t *testing.T) {
	b, e := newBroker(), newEndpoint(t, answers(200))
	for _, account := range []string{"ann", "bob", "ann"} {
		b.publish("k", "", "x", "x-account", account)
	}
	b.publish("k", "", "x")
	serve(t, nil, b, e.URL, func(o *Options) { o.Calls.TenantHeader = "X-Account" })
	b.settled(t)
	letters := b.letters(driver.DeadLetter)
	if n := len(e.requests()); n != 2 || len(letters) != 1 || !strings.Contains(letters[0], `the header "X-Account", which --scope names, is missing`) {
		t.Errorf("%d requests, dead letters %q", n, letters)
	}
}

// Messages of one order key are sent one at a time, in their order, although some are
// sent again.
func TestServe_OrderKey_KeepsOrder(t *testing.T) {
	var running sync.Map
	b := newBroker()
	e := newEndpoint(t, func(w http.ResponseWriter, r *http.Request, n int) {
		lane := r.Header.Get("Ce-Partitionkey")
		if _, twice := running.LoadOrStore(lane, true); twice {
			t.Errorf("two requests of %s at once", lane)
		}
		defer running.Delete(lane)
		if key := r.Header.Get("Ce-Id"); n == 1 && strings.HasSuffix(key, "3") {
			w.WriteHeader(500)
		}
	})
	for n := range 10 {
		for _, lane := range []string{"a", "b", "c"} {
			b.publish(fmt.Sprint(lane, n), lane, "x")
		}
	}
	serve(t, nil, b, e.URL, nil)
	b.settled(t)
	last := map[string]string{}
	for _, r := range e.requests() {
		if lane := r.header.Get("Ce-Partitionkey"); r.key < last[lane] {
			t.Errorf("%s after %s", r.key, last[lane])
		} else {
			last[lane] = r.key
		}
	}
}

func TestServe_MessageCannotBeSent_DeadLetterSaysWhy(t *testing.T) {
	b, e := newBroker(), newEndpoint(t, answers(200))
	b.publish("large", "", strings.Repeat("x", 101))
	b.publish("event", "", "{", "content-type", "application/cloudevents+json")
	b.publish("zip", "", "x", "content-encoding", "gzip")
	serve(t, nil, b, e.URL, func(o *Options) { o.Sending.MaxBody, o.Sending.Mode = 100, 1 })
	b.settled(t)
	letters := b.letters(driver.DeadLetter)
	slices.Sort(letters)
	for i, want := range []string{
		"failed body_too_large the body has 101 bytes, more than --max-body, which is 100; nothing was sent",
		"failed event_invalid nothing was sent: the CloudEvent is no JSON object", `failed event_invalid nothing was sent: the data have the encoding "gzip"`,
	} {
		if len(letters) != 3 || !strings.HasPrefix(letters[i], want) {
			t.Errorf("dead letters %q, want %s", letters, want)
		}
	}
	if len(e.requests()) > 0 {
		t.Error("something was sent")
	}
}

// A redirect to another address is not followed, and the log says why all wait.
func TestServe_Redirect_IsNotFollowed(t *testing.T) {
	other := newEndpoint(t, answers(200))
	b, e := newBroker(), newEndpoint(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if n == 1 {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}
	})
	b.publish("k", "", "x")
	serve(t, nil, b, e.URL, nil)
	b.settled(t)
	if len(other.requests()) > 0 || len(e.requests()) != 2 {
		t.Errorf("%d requests at the other address, %d at the service", len(other.requests()), len(e.requests()))
	}
}
