package webhook_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/webhook"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// newSink is a sink to a server.
func newSink(t *testing.T, handler http.HandlerFunc, o *webhook.Options) outbox.Sink {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	sink, err := webhook.New(func(context.Context, *outbox.Message) (webhook.Endpoint, error) {
		return webhook.Endpoint{URL: server.URL + "/hook", Secret: secret}, nil
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	return sink
}

func publish(t *testing.T, sink outbox.Sink, messages ...outbox.Message) []error {
	t.Helper()
	var mu sync.Mutex
	answers := make([]error, len(messages))
	sink.Publish(t.Context(), messages, func(i int, err error) {
		mu.Lock()
		defer mu.Unlock()
		answers[i] = err
	})
	return answers
}

func TestPublish_Message_IsSignedAndHasItsKey(t *testing.T) {
	var got *http.Request
	var body []byte
	sink := newSink(t, func(_ http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		body, _ = io.ReadAll(r.Body)
	}, nil)
	m := outbox.Message{Topic: "ann", ID: `a"1`, Body: []byte(`{"n":1}`), Headers: []store.Header{
		{Name: "content-type", Value: "application/json"}, {Name: "idempotency-key", Value: "other"}, {Name: "webhook-id", Value: "other"},
	}}
	if err := publish(t, sink, m)[0]; err != nil {
		t.Fatal(err)
	}
	h := got.Header
	if got.Method != "POST" || got.URL.Path != "/hook" || string(body) != `{"n":1}` || h.Get("Content-Type") != "application/json" ||
		h.Get("Idempotency-Key") != `"a\"1"` || h.Get("Webhook-Id") != `a"1` || len(h.Values("Idempotency-Key")) != 1 {
		t.Errorf("%s %s with %v and body %q", got.Method, got.URL, h, body)
	}
	if err := webhook.Verify(secret, h, body, time.Now()); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"another secret": webhook.Verify([]byte("other"), h, body, time.Now()),
		"another body":   webhook.Verify(secret, h, []byte("{}"), time.Now()),
		"too late":       webhook.Verify(secret, h, body, time.Now().Add(time.Hour)),
		"too early":      webhook.Verify(secret, h, body, time.Now().Add(-time.Hour)),
		"no headers":     webhook.Verify(secret, http.Header{}, body, time.Now()),
	} {
		if !errors.Is(err, webhook.ErrSignature) {
			t.Errorf("%s: %v, want ErrSignature", name, err)
		}
	}
}

// The example of the specification's reference libraries.
func TestVerify_SampleOfTheSpecification_IsValid(t *testing.T) {
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("webhook-timestamp", "1614265330")
	h.Set("webhook-signature", "v1,other v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	if err := webhook.Verify(key, h, []byte(`{"test": 2432232314}`), time.Unix(1614265330, 0)); err != nil {
		t.Error(err)
	}
}

func TestPublish_EachStatus_IsSentLaterOrPoison(t *testing.T) {
	var status int
	sink := newSink(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Path)
		w.WriteHeader(status)
	}, nil)
	for want, all := range map[string][]int{
		"sent":   {200, 201, 202, 204},
		"later":  {301, 302, 307, 401, 403, 404, 408, 409, 425, 429, 500, 502, 503, 504},
		"poison": {400, 405, 410, 413, 414, 415, 422, 431, 501},
	} {
		for _, status = range all {
			err := publish(t, sink, outbox.Message{Topic: "t", ID: "1"})[0]
			got := "later"
			if err == nil {
				got = "sent"
			} else if outbox.IsPoison(err) {
				got = "poison"
			}
			if got != want {
				t.Errorf("status %d: %s (%v), want %s", status, got, err, want)
			}
		}
	}
}

func TestPublish_MessageCannotBeARequest_IsPoison(t *testing.T) {
	sink := newSink(t, func(http.ResponseWriter, *http.Request) {}, nil)
	if err := publish(t, sink, outbox.Message{Topic: "t", ID: "1", Headers: []store.Header{{Name: "a b", Value: "c"}}})[0]; !outbox.IsPoison(err) {
		t.Errorf("a header with a blank: %v", err)
	}
	if err := publish(t, sink, outbox.Message{Topic: "t", ID: "1", Headers: []store.Header{{Name: "a", Value: "b\nc"}}})[0]; !outbox.IsPoison(err) {
		t.Errorf("a header with a line break: %v", err)
	}
	for _, url := range []string{"ftp://a", "http://", "::"} {
		sink, err := webhook.New(func(context.Context, *outbox.Message) (webhook.Endpoint, error) {
			return webhook.Endpoint{URL: url}, nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := publish(t, sink, outbox.Message{Topic: "t", ID: "1"})[0]; !outbox.IsPoison(err) {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// Errors are logged, kept in the outbox and shown by the console, and the URL of a receiver
// can be its secret.
func TestPublish_URLHasSecrets_ErrorDoesNotShowThem(t *testing.T) {
	status := 503
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	const secrets = "/services/canary?token=canary#canary"
	for name, c := range map[string]struct{ url, want string }{
		"busy":     {server.URL + secrets, "POST to " + server.URL + ": status 503"},
		"password": {strings.Replace(server.URL, "http://", "http://canary:canary@", 1) + secrets, "status 503"},
		"away":     {"http://127.0.0.1:1" + secrets, "POST to http://127.0.0.1:1: dial tcp"},
		"scheme":   {"ftp://canary:canary@a" + secrets, "no http or https URL"},
		"no URL":   {"http://a b" + secrets, "no URL"},
	} {
		sink, err := webhook.New(func(context.Context, *outbox.Message) (webhook.Endpoint, error) {
			return webhook.Endpoint{URL: c.url}, nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := publish(t, sink, outbox.Message{Topic: "t", ID: "1"})[0]; err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// An ID is any UTF-8 text, and a key of HTTP is ASCII.
func TestPublish_IDIsNotASCII_ReceiverWithSemelhttpDropsRepeats(t *testing.T) {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	once, err := semelhttp.Middleware(guard, func(*http.Request) (string, error) { return semel.Shared, nil },
		&semelhttp.Options{Operation: func(*http.Request) string { return "hook" }})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	sink := newSink(t, once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := webhook.Verify(secret, r.Header, body, time.Now()); err != nil {
			t.Error(err)
		}
		if x, ok := semel.FromContext(r.Context()); ok && x.Key() == r.Header.Get("Webhook-Id") {
			keys = append(keys, x.Key())
		}
		w.WriteHeader(http.StatusNoContent)
	})).ServeHTTP, nil)
	long := strings.Repeat("ü", 127)
	for _, id := range []string{"bestellung-müller-1", "bestellung-müller-1", "bestellung-müller-2", long, long, "plain 1", `"\`, "edge "} {
		if err := publish(t, sink, outbox.Message{Topic: "t", ID: id, Body: []byte("{}")})[0]; err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	if len(keys) != 6 || keys[0] == keys[1] || keys[3] != "plain 1" || keys[4] != `"\` || keys[5] == "edge" {
		t.Errorf("the receiver got the keys %q", keys)
	}
}

func TestPublish_NoAnswer_IsLater(t *testing.T) {
	done := make(chan struct{})
	sink := newSink(t, func(_ http.ResponseWriter, r *http.Request) { <-done }, &webhook.Options{Timeout: 20 * time.Millisecond})
	err := publish(t, sink, outbox.Message{Topic: "t", ID: "1"})[0]
	close(done)
	if err == nil || outbox.IsPoison(err) || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("error %v", err)
	}
}

// The look-up of an endpoint may outlast the lease, which can end without Done.
func TestPublish_LeaseEndsDuringLookUp_SendsNothing(t *testing.T) {
	ctx := &lapsing{Context: t.Context()}
	sink, err := webhook.New(func(context.Context, *outbox.Message) (webhook.Endpoint, error) {
		ctx.over.Store(true)
		return webhook.Endpoint{URL: "http://127.0.0.1:1/hook"}, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sink.Publish(ctx, []outbox.Message{{Topic: "t", ID: "1"}}, func(_ int, err error) {
		if !errors.Is(err, errLapsed) {
			t.Errorf("error %v, want the end of the lease", err)
		}
	})
}

// lapsing is a context of a lease that is over when the test says so.
type lapsing struct {
	context.Context
	over atomic.Bool
}

var errLapsed = errors.New("the lease is over")

func (l *lapsing) Err() error {
	if l.over.Load() {
		return errLapsed
	}
	return l.Context.Err()
}

func TestPublish_OneReceiverFails_OthersGetTheirs(t *testing.T) {
	var mu sync.Mutex
	var got []string
	sink := newSink(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		id := r.Header.Get("Webhook-Id")
		got = append(got, id)
		if id == "a-0" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}, nil)
	of := func(key, id string) outbox.Message { return outbox.Message{Topic: "t", OrderKey: key, ID: id} }
	answers := publish(t, sink, of("a", "a-0"), of("a", "a-1"), of("b", "b-0"), of("b", "b-1"))
	if answers[0] == nil || answers[1] == nil || answers[2] != nil || answers[3] != nil || len(got) != 3 {
		t.Errorf("answers %v, requests %q", answers, got)
	}
}
