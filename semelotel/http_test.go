package semelotel_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/semelotel"
)

func TestMiddleware_Replay_LinksAndAnswersLikeFirst(t *testing.T) {
	w := newWorld(t, semelotel.Options{})
	run := w.guard(t, nil, semel.Options{})
	tenant := func(*http.Request) (string, error) { return "canary-tenant", nil }
	once, err := semelhttp.Middleware(run, tenant, &semelhttp.Options{Operation: func(*http.Request) string { return "pay" }})
	if err != nil {
		t.Fatal(err)
	}
	h := once(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, span := w.tracer.Tracer("bank").Start(r.Context(), "bank")
		defer span.End()
		rw.WriteHeader(http.StatusCreated)
		_, _ = rw.Write([]byte("payment 4711"))
	}))
	post := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", "canary-k")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec
	}
	first := post("body")
	spans := w.take()
	if len(spans) != 2 || spans[0].Name != "bank" || spans[1].Name != "semel pay" || spans[0].Parent.SpanID() != spans[1].SpanContext.SpanID() {
		t.Fatalf("the spans of the first request are %+v, want the handler's in the call's", spans)
	}
	again := post("body")
	replay := w.only(t)
	if len(replay.Links) != 1 || replay.Links[0].SpanContext.SpanID() != spans[1].SpanContext.SpanID() {
		t.Errorf("the links of the replay are %+v", replay.Links)
	}
	if again.Header().Get("Idempotent-Replayed") != "true" || again.Code != first.Code || again.Body.String() != first.Body.String() {
		t.Errorf("the replay is %d %q", again.Code, again.Body)
	}
	for name := range again.Header() {
		if strings.Contains(strings.ToLower(name), "trace") {
			t.Errorf("the answer has the header %s", name)
		}
	}
	post("another body")
	want := map[string]float64{"pay executed": 1, "pay replayed": 1, "pay refused_mismatch": 1}
	if got := w.metric(t, "semel.calls", "semel.operation", "semel.outcome"); !maps.Equal(got, want) {
		t.Errorf("semel.calls is %v, want %v", got, want)
	}
}
