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

// A handler whose session has expired sends the browser to a log-in page, and names the path
// that the browser has to come back to.
func TestVerdict_RedirectNamesPathBelowStripPrefix_NothingDone(t *testing.T) {
	for name, c := range map[string]struct {
		target, location string
		again            bool // the same request runs again
	}{
		"the path that was sent":        {"/shop/charges", "/login?next=/shop/charges", true},
		"the path that was cut":         {"/shop/charges", "/login?next=%2Fcharges%3Fa%3D1", true},
		"an absolute URL":               {"http://shop.example/shop/charges", "/login?next=https%3A%2F%2Fshop.example%2Fshop%2Fcharges", true},
		"an escaped prefix":             {"/caf%C3%A9/charges", "/login?next=/caf%25C3%25A9/charges", true},
		"a path that ends in the same":  {"/shop/charges", "/done?see=/other/charges", false},
		"a path with an empty value":    {"/shop/charges", "/done?see=", false},
		"a page with the prefix":        {"/shop/charges", "/done?see=/shop", false},
		"the prefix is the whole path":  {"/shop/", "/login?next=/shop/", true},
		"a page below the whole prefix": {"/shop/", "/done?see=/shop/7", false},
	} {
		t.Run(name, func(t *testing.T) {
			runs := 0
			endpoint := func(w http.ResponseWriter, r *http.Request) {
				runs++
				w.Header().Set("Location", c.location)
				w.WriteHeader(http.StatusFound)
			}
			h := mounted(t, nil, map[string]http.HandlerFunc{"/shop": endpoint, "/café": endpoint})
			for range 2 {
				if w := answerAt(h, "order-17", c.target); w.Code != http.StatusFound {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
			}
			if again := runs == 2; again != c.again {
				t.Errorf("the handler ran %d times", runs)
			}
		})
	}
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
