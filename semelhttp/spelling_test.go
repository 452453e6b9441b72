package semelhttp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-go/semel/semelhttp"
)

func TestMethods_OtherSpelling_IsProtected(t *testing.T) {
	for name, c := range map[string]struct {
		methods   []string
		method    string
		header    string
		protected bool
	}{
		"patch":               {nil, "patch", "", true},
		"Post":                {nil, "Post", "", true},
		"listed as patch":     {[]string{"patch"}, "PATCH", "", true},
		"put":                 {nil, "put", "", false},
		"overridden":          {nil, "GET", "X-HTTP-Method-Override: patch", true},
		"overridden, PUT":     {[]string{"PUT"}, "POST", "X-Method-Override: PUT", true},
		"overridden, DELETE":  {nil, "GET", "X-HTTP-Method: DELETE", false},
		"overridden, by Rack": {nil, "POST", "X-HTTP-Method-Override: GET", true},
	} {
		once, err := semelhttp.Middleware(newGuard(t, nil, nil), byAccount, &semelhttp.Options{Operation: paymentsOperation, Methods: c.methods})
		if err != nil {
			t.Fatal(err)
		}
		runs := 0
		h := once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { runs++; w.WriteHeader(201) }))
		for range 2 {
			r := httptest.NewRequest(c.method, "/pay", strings.NewReader("hello"))
			r.Header.Set("Idempotency-Key", "k")
			if name, value, ok := strings.Cut(c.header, ": "); ok {
				r.Header.Set(name, value)
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		if protected := runs == 1; protected != c.protected {
			t.Errorf("%s: ran %d times", name, runs)
		}
	}
}

// The operation of a route without a method is the same in each spelling.
func TestRoute_MethodInSmallLetters_IsSameOperation(t *testing.T) {
	site := newSite(t, setup{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) })
	for _, method := range []string{"PATCH", "patch", "Patch"} {
		r := site.request("k", "hello")
		r.Method = method
		site.want(site.do(r), 201, "")
	}
	site.wantRuns(1)
}

func TestTransport_KeyHeaderNotCanonical_SendsOneKey(t *testing.T) {
	var got [][]string
	base := roundTripFunc(func(r *http.Request) (*http.Response, error) {
		var keys []string
		for name, values := range r.Header {
			if strings.EqualFold(name, "Idempotency-Key") {
				keys = append(keys, values...)
			}
		}
		got = append(got, keys)
		return &http.Response{StatusCode: 201, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	client := newClient(t, base, nil)
	send := func(h http.Header, method string) error {
		r, err := http.NewRequest(method, "http://example.com/", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = h
		resp, err := client.Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	if err := send(http.Header{"idempotency-key": {"mine"}}, "POST"); err != nil || len(got) != 1 || len(got[0]) != 1 || got[0][0] != "mine" {
		t.Errorf("sent %q, %v", got, err)
	}
	if err := send(http.Header{"idempotency-key": {"a"}, "Idempotency-Key": {"b"}}, "POST"); err == nil || len(got) != 1 {
		t.Errorf("two keys: sent %q, %v", got, err)
	}
	if err := send(http.Header{}, "patch"); err != nil || len(got) != 2 || len(got[1]) != 1 {
		t.Errorf("patch: sent %q, %v", got, err)
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
