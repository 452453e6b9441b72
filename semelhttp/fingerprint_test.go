package semelhttp

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func sum(r *http.Request) string {
	h := newFingerprint(r)
	var s spool
	_ = s.fill(r.Body, r.ContentLength, 1<<20, "", h)
	return string(h.Sum(nil))
}

func TestPayload_Default_ComparesParts(t *testing.T) {
	type req struct{ method, url, ctype, body string }
	base := req{"POST", "/pay/7?a=1&b=2", "application/json", "hello"}
	change := func(f func(*req)) req { r := base; f(&r); return r }
	make := func(r req) *http.Request {
		hr := httptest.NewRequest(r.method, r.url, strings.NewReader(r.body))
		if r.ctype != "" {
			hr.Header.Set("Content-Type", r.ctype)
		}
		return hr
	}
	for name, c := range map[string]struct {
		r    req
		same bool
	}{
		"nothing":        {base, true},
		"host":           {change(func(r *req) { r.url = "http://elsewhere" + r.url }), true},
		"case of type":   {change(func(r *req) { r.ctype = "Application/JSON" }), true},
		"method":         {change(func(r *req) { r.method = "PATCH" }), false},
		"path":           {change(func(r *req) { r.url = "/pay/8?a=1&b=2" }), false},
		"query":          {change(func(r *req) { r.url = "/pay/7?a=1&b=3" }), false},
		"order of query": {change(func(r *req) { r.url = "/pay/7?b=2&a=1" }), false},
		"type":           {change(func(r *req) { r.ctype = "text/plain" }), false},
		"no type":        {change(func(r *req) { r.ctype = "" }), false},
		"body":           {change(func(r *req) { r.body = "hellp" }), false},
		"no body":        {change(func(r *req) { r.body = "" }), false},
		"longer body":    {change(func(r *req) { r.body = "hello " }), false},
		"shifted":        {change(func(r *req) { r.ctype, r.body = r.ctype+"h", "ello" }), false},
		"escaped path":   {change(func(r *req) { r.url = "/pay%2F7?a=1&b=2" }), false},
	} {
		if same := sum(make(c.r)) == sum(make(base)); same != c.same {
			t.Errorf("%s: counts as the same: %v", name, same)
		}
	}
}

func TestPayload_LastByteDiffers_HashDiffers(t *testing.T) {
	a := bytes.Repeat([]byte("x"), 3<<20)
	b := bytes.Clone(a)
	b[len(b)-1] = 'y'
	post := func(body []byte) *http.Request {
		return httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	}
	hash := func(body []byte) string {
		r := post(body)
		h := newFingerprint(r)
		var s spool
		defer s.close()
		if err := s.fill(r.Body, -1, 4<<20, t.TempDir(), h); err != nil {
			t.Fatal(err)
		}
		return string(h.Sum(nil))
	}
	if hash(a) == hash(b) {
		t.Error("a difference after 3 MiB was not seen")
	}
	if first, again := hash(a), hash(a); first != again {
		t.Error("the hash is not stable")
	}
}

func TestMediaType_Variants_HaveNormalForm(t *testing.T) {
	for _, c := range [][2]string{
		{"application/json", "application/json"},
		{"Application/JSON", "application/json"},
		{`text/plain; Charset="UTF-8"`, "text/plain; charset=utf-8"},
		{"text/plain;charset=utf-8", "text/plain; charset=utf-8"},
		{"a/b; y=2; x=1", "a/b; x=1; y=2"},
		{"multipart/form-data; boundary=AbC", "multipart/form-data; boundary=AbC"},
		{"; nonsense=", "; nonsense="},
		{"", ""},
	} {
		h := http.Header{}
		if c[0] != "" {
			h.Set("Content-Type", c[0])
		}
		if got := mediaType(h); got != c[1] {
			t.Errorf("%q: %q, want %q", c[0], got, c[1])
		}
	}
	if mediaType(http.Header{"Content-Type": {"a/b", "c/d"}}) == mediaType(http.Header{"Content-Type": {"a/b"}}) {
		t.Error("a second media type does not count")
	}
}
