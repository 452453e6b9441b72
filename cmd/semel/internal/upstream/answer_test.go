package upstream_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

func (f *front) state(t *testing.T, key string) (store.State, int) {
	t.Helper()
	r, err := f.guard.Get(t.Context(), semel.Call{Operation: operation, Tenant: semel.Shared, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return r.State, r.Attempt
}

func code(t *testing.T, res *http.Response) string {
	t.Helper()
	var p struct {
		Code   string
		Status int
	}
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil || p.Status != res.StatusCode || res.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("no problem document: %v, %+v, %v", err, p, res.Header)
	}
	return p.Code
}

// Only the proxy may set Semel-* headers. Informational answers such as 103 pass,
// but without these headers.
func TestInformationalAnswer_SemelHeaders_Removed(t *testing.T) {
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Link", "</a.css>; rel=preload")
		h.Set("Semel-Outcome", "unknown")
		h.Set("Semel-Result", "final")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusCreated)
	})
	f := newFront(t, b.URL, nil, time.Minute, nil)
	for _, key := range []string{"", "k"} {
		var hints textproto.MIMEHeader
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			hints = h
			return nil
		}})
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if len(hints) != 1 || hints.Get("Link") == "" {
			t.Errorf("%q: ahead of the answer came %v", key, hints)
		}
		if res.StatusCode != http.StatusCreated || res.Header.Get("Semel-Outcome") != "" {
			t.Errorf("%q: %s, %v", key, res.Status, res.Header)
		}
	}
}

// net/http guesses a Content-Type that is missing. The proxy must not, because a
// guess of text/html makes a page of any bytes.
func TestAnswer_NoContentType_NoneAdded(t *testing.T) {
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hints" {
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "<html><script>")
	})
	f := newFront(t, b.URL, nil, time.Minute, nil)
	for _, path := range []string{"/", "/hints"} {
		for _, key := range []string{"", "k" + path, "k" + path} { // and again
			res := f.send(t, "POST", path, key, "")
			if body, err := io.ReadAll(res.Body); err != nil || string(body) != "<html><script>" || len(res.Header["Content-Type"]) > 0 {
				t.Errorf("%s, %q: %q, %v, %v", path, key, body, res.Header, err)
			}
		}
	}
}

// nobody is an address without a listener.
const nobody = "http://127.0.0.1:1"

func TestNotSent_EveryPolicy_MayRunAgain(t *testing.T) {
	for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
		f := newFront(t, nobody, &semel.Options{OnDoubt: policy}, time.Minute, nil)
		res := f.send(t, "POST", "/", "k", "")
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || code(t, res) != "upstream_unreachable" {
			t.Errorf("%v: got %s %v", policy, res.Status, res.Header)
		}
		if state, attempt := f.state(t, "k"); state != store.Released || attempt != 0 {
			t.Errorf("%v: the record is %v after %d attempts", policy, state, attempt)
		}
	}
}

// Without a key nothing is parked, but the client must still learn whether its
// request was sent.
func TestUnkeyed_NotSentOrLost_Distinguished(t *testing.T) {
	f := newFront(t, nobody, nil, time.Minute, nil)
	for _, method := range []string{"GET", "POST", "PUT"} {
		res := f.send(t, method, "/", "", "")
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || code(t, res) != "upstream_unreachable" {
			t.Errorf("%s, nobody listens: %s %v", method, res.Status, res.Header)
		}
	}
	f = newFront(t, backend(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }).URL, nil, time.Minute, nil)
	for _, method := range []string{"GET", "POST", "PUT"} {
		if res := f.send(t, method, "/", "", ""); res.StatusCode != http.StatusBadGateway || code(t, res) != "upstream_lost" {
			t.Errorf("%s, dropped: %s", method, res.Status)
		}
	}
}

func TestAnswerLost_InDoubt(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	drop := func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }
	slow := func(w http.ResponseWriter, r *http.Request) { <-stop }
	for name, c := range map[string]struct {
		backend http.HandlerFunc
		status  int
		code    string
		limit   time.Duration
	}{
		"dropped": {drop, http.StatusBadGateway, "upstream_lost", time.Minute},
		"slow":    {slow, http.StatusGatewayTimeout, "upstream_timeout", 300 * time.Millisecond},
		"5xx":     {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, 500, "", time.Minute},
	} {
		for policy, want := range map[semel.Policy]store.State{semel.Retry: store.Released, semel.Park: store.Unknown} {
			f := newFront(t, backend(t, c.backend).URL, &semel.Options{OnDoubt: policy}, c.limit, nil)
			res := f.send(t, "POST", "/", "k", "body")
			if res.StatusCode != c.status || c.code != "" && code(t, res) != c.code {
				t.Errorf("%s, %v: got %s, want %s", name, policy, res.Status, c.code)
			}
			if state, attempt := f.state(t, "k"); state != want || attempt != 1 {
				t.Errorf("%s, %v: the record is %v after %d attempts, want %v after 1", name, policy, state, attempt, want)
			}
		}
	}
}

func TestAnswerBreaksOff_InDoubt(t *testing.T) {
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("half"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	f := newFront(t, b.URL, &semel.Options{OnDoubt: semel.Park}, time.Minute, nil)
	req, err := http.NewRequest("POST", f.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", "k")
	if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil && res.StatusCode < 500 {
			t.Errorf("the client got %s with %q for half an answer", res.Status, body)
		}
	}
	if state, _ := f.state(t, "k"); state != store.Unknown {
		t.Errorf("the record is %v", state)
	}
}

func TestSemelResultHeader_DecidesOutcome(t *testing.T) {
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Semel-Result", r.URL.Query().Get("result"))
		w.Header().Set("Semel-Outcome", "forged")
		w.WriteHeader(500)
	})
	f := newFront(t, b.URL, &semel.Options{OnDoubt: semel.Park}, time.Minute, nil)
	for result, want := range map[string]store.State{"final": store.Completed, "no-effect": store.Released, "": store.Unknown, "other": store.Unknown} {
		res := f.send(t, "POST", "/?result="+result, "k"+result, "")
		if state, _ := f.state(t, "k"+result); state != want {
			t.Errorf("%q: the record is %v, want %v", result, state, want)
		}
		if res.Header.Get("Semel-Result") != "" || res.Header.Get("Semel-Outcome") == "forged" {
			t.Errorf("%q: the client got %v", result, res.Header)
		}
	}
}

func TestAnswerOfUnknownLength_Replayed(t *testing.T) {
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			_, _ = io.WriteString(w, "part ")
			_ = http.NewResponseController(w).Flush()
		}
	})
	f := newFront(t, b.URL, nil, time.Minute, nil)
	for i := range 2 {
		res := f.send(t, "POST", "/", "k", "")
		body, err := io.ReadAll(res.Body)
		if err != nil || string(body) != "part part part " || (res.Header.Get("Idempotent-Replayed") == "true") != (i == 1) {
			t.Errorf("%d: got %q, %v, %v", i, body, err, res.Header)
		}
	}
}

// The first client gets the trailers of an answer, announced or not.
func TestAnswerTrailers_ReachFirstClient(t *testing.T) {
	for _, announced := range []bool{true, false} {
		b := backend(t, func(w http.ResponseWriter, r *http.Request) {
			if announced {
				w.Header().Set("Trailer", "X-Sum")
			}
			_, _ = io.WriteString(w, "body")
			_ = http.NewResponseController(w).Flush()
			w.Header().Set(http.TrailerPrefix+"X-Sum", "42")
		})
		f := newFront(t, b.URL, nil, time.Minute, nil)
		for _, key := range []string{"", "k"} {
			res := f.send(t, "POST", "/", key, "")
			if body, err := io.ReadAll(res.Body); err != nil || string(body) != "body" || res.Trailer.Get("X-Sum") != "42" {
				t.Errorf("announced %v, key %q: got %q, %v, trailers %v", announced, key, body, err, res.Trailer)
			}
		}
	}
}

func TestUnkeyed_TimeoutLimitsOnlyStartOfAnswer(t *testing.T) {
	next := make(chan struct{})
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, "begun ")
		_ = http.NewResponseController(w).Flush()
		<-next
		_, _ = io.WriteString(w, "done")
	})
	const limit = 2 * time.Second
	f := newFront(t, b.URL, nil, limit, nil)
	res := f.send(t, "GET", "/stream", "", "")
	timer := time.AfterFunc(2*limit, func() { close(next) })
	defer timer.Stop()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "begun done" {
		t.Errorf("got %q, %v", body, err)
	}
	if res := f.send(t, "GET", "/silent", "", ""); res.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("silent: got %s", res.Status)
	}
}

func TestClientHangsUp_RunContinues(t *testing.T) {
	arrived, goOn := make(chan struct{}), make(chan struct{})
	b := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-goOn
		w.WriteHeader(http.StatusCreated)
	}))
	defer b.Close()
	f := newFront(t, b.URL, &semel.Options{OnDoubt: semel.Park}, time.Minute, nil)
	c, err := net.Dial("tcp", strings.TrimPrefix(f.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n")
	<-arrived
	_ = c.Close()
	close(goOn)
	for end := time.Now().Add(time.Minute); ; {
		if state, _ := f.state(t, "k"); state == store.Completed {
			return
		}
		if time.Now().After(end) {
			state, _ := f.state(t, "k")
			t.Fatalf("the record is %v", state)
		}
	}
}
