package semelhttp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-go/semel/semelhttp"
)

// mounted is a server whose protected handlers are in routers below a prefix each. All
// routers have the same patterns.
func mounted(t *testing.T, o *semelhttp.Options, handlers map[string]http.HandlerFunc) http.Handler {
	t.Helper()
	once, err := semelhttp.Middleware(newGuard(t, nil, nil), byHeader, o)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for prefix, h := range handlers {
		router := http.NewServeMux()
		router.Handle("POST /charges", once(h))
		router.Handle("POST /{$}", once(h))
		mux.Handle(prefix+"/", http.StripPrefix(prefix, router))
	}
	return mux
}

// answerAt sends a request to a handler without a network.
func answerAt(h http.Handler, key, target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(`{"cents":4200}`))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Two routers below http.StripPrefix have equal patterns and equal paths.
func TestPayload_PathBelowStripPrefix_PrefixIsCompared(t *testing.T) {
	type request struct {
		target string
		status int
		ran    string // the endpoint that ran
	}
	for name, requests := range map[string][]request{
		"another prefix":             {{"/cards/charges", 201, "cards"}, {"/wallets/charges", 422, ""}, {"/cards/charges", 201, ""}},
		"the prefixes of an account": {{"/7/shop/charges", 201, "seven"}, {"/8/shop/charges", 422, ""}, {"/7/shop/charges", 201, ""}},
		"a prefix that is longer":    {{"/shop/charges", 201, "shop"}, {"/7/shop/charges", 422, ""}},
		"an absolute URL":            {{"/cards/charges", 201, "cards"}, {"http://example.com/cards/charges", 201, ""}, {"http://example.com/wallets/charges", 422, ""}},
		"a slash at the end":         {{"/cards/", 201, "cards"}, {"/wallets/", 422, ""}, {"/cards/", 201, ""}},
		"a prefix that is escaped":   {{"/caf%C3%A9/charges", 201, "café"}, {"/café/charges", 201, ""}, {"/caf%C3%A8/charges", 422, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			ran := ""
			endpoint := func(name string) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					ran += name
					w.WriteHeader(http.StatusCreated)
				}
			}
			h := mounted(t, nil, map[string]http.HandlerFunc{
				"/cards": endpoint("cards"), "/wallets": endpoint("wallets"), "/shop": endpoint("shop"), "/7/shop": endpoint("seven"), "/8/shop": endpoint("eight"),
				"/café": endpoint("café"), "/cafè": endpoint("cafè"),
			})
			for _, r := range requests {
				ran = ""
				w := answerAt(h, "order-17", r.target)
				if w.Code != r.status || ran != r.ran {
					t.Errorf("%s: %d %s, %q ran; want %d, %q", r.target, w.Code, w.Body, ran, r.status, r.ran)
				}
				if code := w.Header().Get("Semel-Refusal"); r.status == 422 && code != semelhttp.CodePayloadMismatch {
					t.Errorf("%s: the code is %q", r.target, code)
				}
			}
		})
	}
}
