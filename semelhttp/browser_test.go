package semelhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/semel-go/semel/semelhttp"
)

func TestReplay_BrowserHeaders_AreKept(t *testing.T) {
	headers := map[string]string{
		"Access-Control-Allow-Origin": "https://shop.example", "Access-Control-Allow-Credentials": "true", "Access-Control-Expose-Headers": "Location",
		"Vary": "Origin", "Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Strict-Transport-Security": "max-age=1", "Referrer-Policy": "no-referrer", "Permissions-Policy": "camera=()", "Cross-Origin-Resource-Policy": "same-site",
	}
	for name, o := range map[string]semelhttp.Options{"whole": {}, "tombstone": {MaxResponse: 2}} {
		site := newSite(t, setup{options: o}, func(w http.ResponseWriter, _ *http.Request) {
			for k, v := range headers {
				w.Header().Set(k, v)
			}
			_, _ = io.WriteString(w, "done")
		})
		site.post("k", "hello")
		again := site.post("k", "hello")
		for k, v := range headers {
			if got := again.Header.Values(k); len(got) != 1 || got[0] != v {
				t.Errorf("%s: %s is %q, want %q", name, k, got, v)
			}
		}
	}
}

// A CORS handler around the middleware answers for the origin of each request.
func TestReplay_OuterHandlerSetOrigin_ItsOriginIsSent(t *testing.T) {
	outer := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
			h.ServeHTTP(w, r)
		})
	}
	site := newSite(t, setup{outer: outer}, echo)
	for _, origin := range []string{"https://a.example", "https://b.example"} {
		r := site.request("k", "hello")
		r.Header.Set("Origin", origin)
		if got := site.do(r).Header.Values("Access-Control-Allow-Origin"); len(got) != 1 || got[0] != origin {
			t.Errorf("%s got %q", origin, got)
		}
	}
	site.wantRuns(1)
}

// The first answer is for an origin with credentials, and the replay for one without.
func TestReplay_OuterHandlerSetOrigin_CredentialsAreItsOwn(t *testing.T) {
	outer := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
			if r.Header.Get("Origin") == "https://a.example" {
				w.Header().Set("Access-Control-Allow-Credentials", "true")
			}
			h.ServeHTTP(w, r)
		})
	}
	site := newSite(t, setup{outer: outer}, echo)
	for _, c := range [][2]string{{"https://a.example", "true"}, {"https://b.example", ""}, {"https://a.example", "true"}} {
		r := site.request("k", "hello")
		r.Header.Set("Origin", c[0])
		if got := site.do(r).Header.Get("Access-Control-Allow-Credentials"); got != c[1] {
			t.Errorf("%s got %q, want %q", c[0], got, c[1])
		}
	}
	site.wantRuns(1)
}

func TestRefusalOrigins_Refusal_IsReadable(t *testing.T) {
	for _, c := range []struct {
		origins []string
		origin  string
		allowed string
	}{
		{nil, "https://shop.example", ""},
		{[]string{"https://shop.example"}, "https://shop.example", "https://shop.example"},
		{[]string{"https://shop.example"}, "https://evil.example", ""},
		{[]string{"*"}, "https://evil.example", "*"},
		{[]string{"https://shop.example"}, "", ""},
	} {
		site := newSite(t, setup{options: semelhttp.Options{RefusalOrigins: c.origins}}, echo)
		r := site.request("", "hello")
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		a := site.do(r)
		site.want(a, 400, semelhttp.CodeKeyMissing)
		if got := a.Header.Get("Access-Control-Allow-Origin"); got != c.allowed {
			t.Errorf("%v, %s: allowed is %q, want %q", c.origins, c.origin, got, c.allowed)
		}
		if exposed := a.Header.Get("Access-Control-Expose-Headers"); strings.Contains(exposed, "Semel-Refusal") != (c.allowed != "") {
			t.Errorf("%v, %s: exposed are %q", c.origins, c.origin, exposed)
		}
		if credentials := a.Header.Get("Access-Control-Allow-Credentials") == "true"; credentials != (c.allowed == c.origin && c.allowed != "") {
			t.Errorf("%v, %s: with credentials: %v", c.origins, c.origin, credentials)
		}
		r = site.request("k", "hello")
		r.Header.Set("Origin", "https://shop.example")
		if a := site.do(r); a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v: the handler's own answer is changed: %v", c.origins, a.Header)
		}
	}
}
