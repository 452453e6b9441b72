package hook_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/hook"
	"github.com/semel-go/semel/store"
)

// to makes a Hook that asks a handler.
func to(t *testing.T, timeout time.Duration, f http.HandlerFunc) *hook.Hook {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return at(t, timeout, s.URL)
}

func at(t *testing.T, timeout time.Duration, address string) *hook.Hook {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	h := hook.New(u, timeout, nil)
	t.Cleanup(h.Close)
	return h
}

func says(kind, doc string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(doc))
	}
}

func TestReconcile_QuestionNamesRequest(t *testing.T) {
	var got map[string]any
	h := to(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("asked by %s with %v", r.Method, r.Header)
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		says("application/json", `{"happened":null}`)(w, r)
	})
	q := hook.Question{Operation: "http", Tenant: "ann", Key: "k1", RequestDigest: "ab", Fence: 12, Attempts: 2,
		FirstSeen: time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC)}
	if v, err := h.Reconcile(t.Context(), q); err != nil || !reflect.DeepEqual(v, semel.Verdict{}) {
		t.Errorf("got %+v, %v", v, err)
	}
	want := map[string]any{"operation": "http", "tenant": "ann", "key": "k1", "request_digest": "ab", "fence": 12.0, "attempts": 2.0,
		"first_seen": "2026-11-20T01:02:03Z"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// JSON replaces every byte that is not UTF-8 by the same character, so that two
// tenants could not be told apart.
func TestReconcile_KeyNotUTF8_NotAsked(t *testing.T) {
	h := to(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		t.Error("it was asked about")
		says("application/json", `{"happened":false,"final":true}`)(w, r)
	})
	for field, q := range map[string]hook.Question{
		"tenant": {Operation: "http", Tenant: "Jos\xe9", Key: "k1"}, "key": {Operation: "http", Key: "\xff"}, "operation": {Operation: "\xff", Key: "k1"},
	} {
		if v, err := h.Reconcile(t.Context(), q); err == nil || !strings.Contains(err.Error(), field) || !reflect.DeepEqual(v, semel.Verdict{}) {
			t.Errorf("%s: got %+v, %v", field, v, err)
		}
	}
}

func TestReconcile_OnlyClearAnswerDecides(t *testing.T) {
	kept := store.Outcome{Code: 201, Header: []store.Header{{Name: "Link", Value: "a"}, {Name: "Link", Value: "b"}, {Name: "Location", Value: "/p/1"}, {Name: "Content-Type"}}, Body: []byte(`{"id":1}`)}
	for name, c := range map[string]struct {
		doc  string
		want semel.Verdict
		err  string
	}{
		"it happened": {`{"happened":true,"response":{"status":201,"headers":{"location":"/p/1","Link":["a","b"]},"body":"{\"id\":1}"}}`,
			semel.Happened(kept), ""},
		"it happened, in base64": {`{"happened":true,"response":{"status":200,"body_base64":"AAE="}}`, semel.Happened(store.Outcome{Code: 200, Header: []store.Header{{Name: "Content-Type"}}, Body: []byte{0, 1}}), ""},
		"it happened, no body":   {`{"happened":true,"response":{"status":204}}`, semel.Happened(store.Outcome{Code: 204}), ""},
		"never":                  {`{"happened":false,"final":true}`, semel.DidNotHappen(), ""},
		"not yet":                {`{"happened":false}`, semel.Verdict{}, ""},
		"not yet, in words":      {`{"happened":false,"final":false}`, semel.Verdict{}, ""},
		"not known":              {`{"happened":null}`, semel.Verdict{}, ""},
		"nothing said":           {`{}`, semel.Verdict{}, ""},
		"final alone":            {`{"final":true}`, semel.Verdict{}, ""},
		"no response":            {`{"happened":true}`, semel.Verdict{}, "no response"},
		"a no with a response":   {`{"happened":false,"final":true,"response":{"status":200}}`, semel.Verdict{}, "is false"},
		"a bad status":           {`{"happened":true,"response":{"status":99}}`, semel.Verdict{}, "status: is 99"},
		"two bodies":             {`{"happened":true,"response":{"status":200,"body":"a","body_base64":"YQ=="}}`, semel.Verdict{}, "both"},
		"no base64":              {`{"happened":true,"response":{"status":200,"body_base64":"*"}}`, semel.Verdict{}, "base64"},
		"a header of numbers":    {`{"happened":true,"response":{"status":200,"headers":{"Link":7}}}`, semel.Verdict{}, "not understood"},
		"a word":                 {`{"happened":"yes"}`, semel.Verdict{}, "not understood"},
		"half an answer":         {`{"happened":true,"resp`, semel.Verdict{}, "not understood"},
		"yes and no":             {`{"happened":true,"response":{"status":201},"happened":false,"final":true}`, semel.Verdict{}, "twice"},
		"yes and No":             {`{"final":true,"happened":true,"response":{"status":201},"Happened":false}`, semel.Verdict{}, "twice"},
		"not final, and final":   {`{"happened":false,"final":false,"final":true}`, semel.Verdict{}, "twice"},
		"two statuses":           {`{"happened":true,"response":{"status":200,"body":"a","status":402}}`, semel.Verdict{}, `"response.status" twice`},
		"two bodies and Body":    {`{"happened":true,"response":{"status":200,"body":"a","Body":"b"}}`, semel.Verdict{}, `"response.body" twice`},
		"two values of a header": {`{"happened":true,"response":{"status":200,"headers":{"ETag":"a","etag":"b"}}}`, semel.Verdict{}, `a member of "response.headers" twice`},
		"two unknown members":    {`{"note":1,"happened":false,"final":true,"note":2}`, semel.Verdict{}, "the answer has a member twice"},
		"two, in an unknown one": {`{"happened":false,"final":true,"note":{"a":1,"a":2}}`, semel.Verdict{}, "the answer has a member twice"},
		"the same in objects":    {`{"happened":false,"final":true,"note":{"a":{"b":{"c":1,"c":2}}}}`, semel.DidNotHappen(), ""}, // deeper than an answer
		"two answers":            {`{"happened":false,"final":true}{"happened":true}`, semel.Verdict{}, "not understood"},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := to(t, time.Minute, says("application/json; charset=utf-8", c.doc)).Reconcile(t.Context(), hook.Question{})
			if !reflect.DeepEqual(v, c.want) || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %+v, %v; want %+v, %s", v, err, c.want, c.err)
			}
		})
	}
}

func TestReconcile_UnusableAnswer_NotKnown(t *testing.T) {
	never := `{"happened":false,"final":true}`
	for name, f := range map[string]http.HandlerFunc{
		"another status": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404); _, _ = w.Write([]byte(never)) },
		"a redirect":     func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/other", http.StatusFound) },
		"another type":   says("text/html", never),
		"cut short": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(never))
			panic(http.ErrAbortHandler)
		},
	} {
		if v, err := to(t, time.Minute, f).Reconcile(t.Context(), hook.Question{}); err == nil || !reflect.DeepEqual(v, semel.Verdict{}) {
			t.Errorf("%s: got %+v, %v", name, v, err)
		}
	}
	if v, err := at(t, time.Minute, "http://127.0.0.1:1").Reconcile(t.Context(), hook.Question{}); err == nil || !reflect.DeepEqual(v, semel.Verdict{}) {
		t.Errorf("nobody there: got %+v, %v", v, err)
	}
}

func TestReconcile_SlowHook_TimesOut(t *testing.T) {
	stop := make(chan struct{})
	h := to(t, 20*time.Millisecond, func(w http.ResponseWriter, r *http.Request) { <-stop })
	defer close(stop)
	if _, err := h.Reconcile(context.Background(), hook.Question{}); err == nil {
		t.Error("it waited for ever")
	}
}
