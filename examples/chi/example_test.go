// Package chi shows Semel in a router of chi, which takes the net/http middleware as
// it is.
package chi

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-chi/chi/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store/memstore"
)

// route names the operation. It needs a middleware of With or Group, which chi runs
// after it has found the route; one of Use on the top router runs before.
func route(r *http.Request) string {
	return r.Method + " " + chi.RouteContext(r.Context()).RoutePattern()
}

func Example() {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		panic(err)
	}
	account := func(*http.Request) (string, error) { return "ann", nil } // of the authenticated user
	once, err := semelhttp.Middleware(guard, account, &semelhttp.Options{Operation: route})
	if err != nil {
		panic(err)
	}
	router := chi.NewRouter()
	payments := 0
	router.With(once).Post("/accounts/{account}/payments", func(w http.ResponseWriter, r *http.Request) {
		payments++
		x, _ := semel.FromContext(r.Context())
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "%s: payment %d of %s", x.Operation(), payments, chi.URLParam(r, "account"))
	})
	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/accounts/7/payments", nil)
		r.Header.Set("Idempotency-Key", "7f3c")
		w := httptest.NewRecorder()
		router.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	// Output:
	// 201 POST /accounts/{account}/payments: payment 1 of 7
	// 201 POST /accounts/{account}/payments: payment 1 of 7
}
