package semelhttp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Records keep these digests, so a new version must compute the same ones.
func TestPayload_PathIsWhole_DigestStays(t *testing.T) {
	const want = "986d6ef99160e7f8e7a870a7c7cd5dec360b1b5cf9081f7f9ccb15dd8ebd3914"
	for name, change := range map[string]func(r *http.Request){
		"path":            func(*http.Request) {},
		"slash at end":    func(r *http.Request) { r.URL.Path, r.RequestURI = "/pay/ä b/", "/pay/%C3%A4%20b/?a=1" },
		"slash cut":       func(r *http.Request) { r.RequestURI = "/pay/%C3%A4%20b/?a=1" },
		"absolute form":   func(r *http.Request) { r.RequestURI = "http://shop.example/pay/%C3%A4%20b?a=1" },
		"other spelling":  func(r *http.Request) { r.RequestURI = "/pay/ä%20b?a=1" },
		"no request line": func(r *http.Request) { r.RequestURI = "" },
		"no URL":          func(r *http.Request) { r.RequestURI = "/%zz" },
		"rewritten":       func(r *http.Request) { r.RequestURI = "/old/7?a=1" },
	} {
		r := httptest.NewRequest(http.MethodPost, "http://shop.example/pay/%C3%A4%20b?a=1", strings.NewReader("hello"))
		change(r)
		if got := fmt.Sprintf("%x", sum(t, nil, r)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
