package semelhttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

// The methods that the server itself protects are operations of their own. A client cannot make
// further ones.
func TestOperation_ProtectedMethod_IsNamed(t *testing.T) {
	byBody := func(r *http.Request, body io.Reader) (string, error) {
		b, err := io.ReadAll(body)
		return string(b), err
	}
	once, err := semelhttp.Middleware(newGuard(t, nil, nil), byHeader, &semelhttp.Options{
		Methods: []string{"PURGE", "ban", "POST"}, KeyFrom: byBody,
		Payload: func(*http.Request, io.Reader) (semel.Payload, error) { return semel.NoPayload(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	var ran []string
	mux := http.NewServeMux()
	mux.Handle("/cache/{id}", once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x, _ := semel.FromContext(r.Context())
		ran = append(ran, r.Method+" as "+x.Operation())
		w.WriteHeader(http.StatusCreated)
	})))
	for _, c := range []struct{ method, replaced string }{{"PURGE", ""}, {"BAN", ""}, {"purge", ""}, {"PURGE", ""}, {"ODD", "POST"}, {"ODDER", "POST"}} {
		r := httptest.NewRequest(c.method, "/cache/7", strings.NewReader("job-7"))
		if c.replaced != "" {
			r.Header.Set("X-HTTP-Method-Override", c.replaced)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != http.StatusCreated {
			t.Errorf("%v: %d %s", c, w.Code, w.Body)
		}
	}
	if got := strings.Join(ran, ", "); got != "PURGE as PURGE /cache/{id}, BAN as BAN /cache/{id}, ODD as OTHER /cache/{id}" {
		t.Error(got)
	}
}
