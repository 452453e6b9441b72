package hook_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/hook"
)

// A condition is about the answer of the service. With it the hook would answer 304,
// 412 or 206, and a look-alike of a header could change its decision.
func TestAuthorize_ConditionsAndLookalikes_NotSent(t *testing.T) {
	var got http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		http.ServeContent(w, r, "a.txt", time.Unix(1e9, 0), strings.NewReader("yes"))
	}))
	defer s.Close()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	h := hook.New(u, time.Minute, nil)
	defer h.Close()
	r := httptest.NewRequest("POST", "/pay", nil)
	for name, v := range map[string]string{
		"If-None-Match": "*", "If-Match": `"x"`, "If-Modified-Since": "Mon, 02 Jan 2040 15:04:05 GMT", "If-Unmodified-Since": "Mon, 02 Jan 1990 15:04:05 GMT",
		"If-Range": `"x"`, "Range": "bytes=9-10", "X_Forwarded_Uri": "/other", "X_User": "eve", "Authorization": "Bearer t", "Http2-Settings": "AAM",
	} {
		r.Header[name] = []string{v}
	}
	if err := h.Authorize(r); err != nil {
		t.Errorf("refused: %v", err)
	}
	if got.Get("Authorization") != "Bearer t" || got.Get("X-Forwarded-Uri") != "/pay" {
		t.Errorf("asked with %v", got)
	}
	for name := range got {
		if strings.HasPrefix(name, "If-") || name == "Range" || strings.Contains(name, "_") || name == "Http2-Settings" {
			t.Errorf("asked with %s", name)
		}
	}
}

// The text of an error is logged, and the query of the URL may contain a secret.
func TestAuthorize_CannotConnect_ErrorShowsNoURL(t *testing.T) {
	u, err := url.Parse("http://user:canary@127.0.0.1:1/canary?token=canary")
	if err != nil {
		t.Fatal(err)
	}
	h := hook.New(u, time.Minute, nil)
	defer h.Close()
	if err := h.Authorize(httptest.NewRequest("POST", "/pay", nil)); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("%v", err)
	}
	if _, err := h.Reconcile(t.Context(), hook.Question{}); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("%v", err)
	}
}

// The peer of a Unix socket has no address, so that a trusted gateway's is all there is.
func TestAuthorize_UnixPeer_TrustedForSent(t *testing.T) {
	for _, trust := range []bool{true, false} {
		var got http.Header
		h := to(t, time.Minute, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
		if trust {
			h.TrustForwarded()
		}
		r := httptest.NewRequest("POST", "/pay", nil)
		r.RemoteAddr = "@"
		r.Header.Set("X-Forwarded-For", "192.0.2.7")
		want := ""
		if trust {
			want = "192.0.2.7"
		}
		if err := h.Authorize(r); err != nil || got.Get("X-Forwarded-For") != want {
			t.Errorf("trust %v: asked with %v, %v", trust, got, err)
		}
	}
}

// The text of an error is logged, and kept in the record.
func TestHook_OddAnswer_IsNotQuoted(t *testing.T) {
	reason := to(t, time.Minute, func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = c.Write([]byte("HTTP/1.1 500 canary\r\nContent-Length: 0\r\n\r\n"))
		_ = c.Close()
	})
	if err := reason.Authorize(httptest.NewRequest("POST", "/pay", nil)); err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "500") {
		t.Errorf("the reason phrase: %v", err)
	}
	for name, f := range map[string]http.HandlerFunc{
		"the type":        says("text/canary", "{}"),
		"a member":        says("application/json", `{"happened":null,"canary":1,"canary":2}`),
		"a header's name": says("application/json", `{"happened":true,"response":{"status":200,"headers":{"X-Canary":"1","x-canary":"2"}}}`),
	} {
		if _, err := to(t, time.Minute, f).Reconcile(t.Context(), hook.Question{}); err == nil || strings.Contains(strings.ToLower(err.Error()), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
