package semelhttp

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
)

// sum is the fingerprint of a request under options; nil options are the defaults.
func sum(t *testing.T, o *Options, r *http.Request) string {
	t.Helper()
	c, err := o.config()
	if err != nil {
		t.Fatal(err)
	}
	c.TempDir = t.TempDir()
	var s spool
	defer s.close()
	b, p := c.fingerprint(r, &s)
	if p != nil {
		t.Fatalf("%+v", p)
	}
	return string(b)
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
		"host":           {change(func(r *req) { r.url = "http://elsewhere" + r.url }), false},
		"case of method": {change(func(r *req) { r.method = "post" }), true},
		"case of type":   {change(func(r *req) { r.ctype = "Application/JSON" }), true},
		"method":         {change(func(r *req) { r.method = "PATCH" }), false},
		"path":           {change(func(r *req) { r.url = "/pay/8?a=1&b=2" }), false},
		"slash at end":   {change(func(r *req) { r.url = "/pay/7/?a=1&b=2" }), true},
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
		if same := sum(t, nil, make(c.r)) == sum(t, nil, make(base)); same != c.same {
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
	hash := func(body []byte) string { return sum(t, nil, post(body)) }
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
		{"multipart/form-data; boundary=AbC", "multipart/form-data"},
		{"; nonsense=", "; nonsense="},
		{"", ""},
	} {
		h := http.Header{}
		if c[0] != "" {
			h.Set("Content-Type", c[0])
		}
		if got, _ := mediaType(h); got != c[1] {
			t.Errorf("%q: %q, want %q", c[0], got, c[1])
		}
	}
	two, _ := mediaType(http.Header{"Content-Type": {"a/b", "c/d"}})
	if one, _ := mediaType(http.Header{"Content-Type": {"a/b"}}); one == two {
		t.Error("a second media type does not count")
	}
}

func TestPayload_Host_ComparesNames(t *testing.T) {
	hash := func(host string, o *Options) string {
		r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader("hello"))
		r.Host = host
		return sum(t, o, r)
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"shop.example", "Shop.Example.", true},
		{"shop.example", "shop.example:443", true},
		{"shop.example", "pub.example", false},
		{"shop.example", "shop.example:8443", false},
		{"10.0.0.1:8080", "10.0.0.2:8080", true}, // two replicas
		{"127.0.0.1:8080", "localhost:8080", true},
		{"[::1]:8080", "[::1]", true},
		{"10.0.0.1", "shop.example", false},
	} {
		if same := hash(c.a, nil) == hash(c.b, nil); same != c.same {
			t.Errorf("%s and %s count as the same: %v", c.a, c.b, same)
		}
	}
	if none := (&Options{FingerprintHeaders: []string{}}); hash("a.example", none) != hash("b.example", none) {
		t.Error("the host counts although it is not listed")
	}
}

func TestPayload_HeadersThatChangeMeaning_AreCompared(t *testing.T) {
	hash := func(o *Options, name string, values ...string) string {
		r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader("hello"))
		r.Header[http.CanonicalHeaderKey(name)] = values
		return sum(t, o, r)
	}
	for _, name := range []string{
		"Content-Encoding", "Content-Range", "Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "X-HTTP-Method-Override",
		"X-HTTP-Method", "X-Method-Override", "SOAPAction", "X-Amz-Target", "Depth", "Destination", "Overwrite",
		"ce-type", "ce-subject", "Event-Type", "X-Event-Type", "X-Event-Name", "X-Event-Key", "X-GitHub-Event", "X-Gitlab-Event", "X-Gitea-Event", "X-Shopify-Topic", "X-WC-Webhook-Topic",
	} {
		if hash(nil, name) == hash(nil, name, "1") || hash(nil, name, "1") == hash(nil, name, "2") || hash(nil, name, "1", "2") == hash(nil, name, "12") {
			t.Errorf("%s does not count", name)
		}
	}
	for _, name := range []string{"User-Agent", "Traceparent", "Authorization", "X-Api-Version", "ce-id", "ce-time", "X-GitHub-Delivery", "X-Shopify-Webhook-Id", "X-Event-Time"} {
		if hash(nil, name, "1") != hash(nil, name, "2") {
			t.Errorf("%s counts", name)
		}
	}
	if o := (&Options{FingerprintHeaders: []string{"x-api-version"}}); hash(o, "X-Api-Version", "1") == hash(o, "X-Api-Version", "2") {
		t.Error("a listed header does not count")
	}
}

// If the hash did not tell the headers from the body, a client could move one into the other.
func TestPayload_HeaderMovedIntoBody_Differs(t *testing.T) {
	const kind = "multipart/mixed; boundary=b" // such a body without a boundary line is compared by its bytes
	for _, media := range []string{"text/plain", kind} {
		post := func(body []byte, match string) string {
			r := httptest.NewRequest(http.MethodPost, "/pay", bytes.NewReader(body))
			r.Header.Set("Content-Type", media)
			if match != "" {
				r.Header.Set("If-Match", match)
			}
			return sum(t, nil, r)
		}
		moved := append(appendPart(appendPart(nil, "If-Match"), "v1"), "order"...)
		if post([]byte("order"), "v1") == post(moved, "") {
			t.Errorf("%s: a header and its bytes at the start of the body count as the same", media)
		}
	}
}

// form is a multipart request; parts are headers and bodies in turn.
func form(boundary, end string, parts ...string) *http.Request {
	var b strings.Builder
	for i := 0; i+1 < len(parts); i += 2 {
		b.WriteString("--" + boundary + "\r\n" + parts[i] + "\r\n\r\n" + parts[i+1] + "\r\n")
	}
	b.WriteString(end)
	r := httptest.NewRequest(http.MethodPost, "/upload", strings.NewReader(b.String()))
	r.Header.Set("Content-Type", `multipart/form-data; boundary="`+boundary+`"`)
	return r
}

func TestPayload_Multipart_ComparesParts(t *testing.T) {
	const field, file = `Content-Disposition: form-data; name="a"`, "Content-Disposition: form-data; name=\"f\"; filename=\"x\"\r\nContent-Type: text/plain"
	big := strings.Repeat("x", 300<<10) // it is spooled to a file
	base := sum(t, nil, form("one", "--one--\r\n", field, "1", file, big))
	for name, c := range map[string]struct {
		r    *http.Request
		same bool
	}{
		"another boundary":       {form("two", "--two--\r\n", field, "1", file, big), true},
		"no line after the end":  {form("two", "--two--", field, "1", file, big), true},
		"case of a header":       {form("two", "--two--", strings.Replace(field, "Content-Disposition", "content-disposition", 1), "1", file, big), true},
		"another value":          {form("one", "--one--\r\n", field, "2", file, big), false},
		"another last byte":      {form("one", "--one--\r\n", field, "1", file, big[1:]+"y"), false},
		"another name":           {form("one", "--one--\r\n", strings.Replace(field, `"a"`, `"b"`, 1), "1", file, big), false},
		"another order":          {form("one", "--one--\r\n", file, big, field, "1"), false},
		"a part less":            {form("one", "--one--\r\n", field, "1"), false},
		"a part more":            {form("one", "--one--\r\n", field, "1", file, big, field, ""), false},
		"bytes in another part":  {form("one", "--one--\r\n", field, "1x", file, big[1:]), false},
		"another media type":     {form("one", "--one--\r\n", field, "1", strings.Replace(file, "plain", "html", 1), big), false},
		"no end":                 {form("one", "", field, "1", file, big), false},
		"a boundary in the body": {form("one", "--one--\r\n", field, "1", file, big+"\r\n--one"), false},
	} {
		if same := sum(t, nil, c.r) == base; same != c.same {
			t.Errorf("%s: counts as the same: %v", name, same)
		}
	}
	if broken := sum(t, nil, form("one", "", field, "1")); broken == sum(t, nil, form("two", "", field, "1")) || broken != sum(t, nil, form("one", "", field, "1")) {
		t.Error("a body that is no valid form is not compared by its bytes")
	}
	if hello := sum(t, nil, form("one", "hello")); hello == sum(t, nil, form("one", "other")) || hello == sum(t, nil, form("one", "")) {
		t.Error("bodies without any boundary line count as the same")
	}
}

func TestPayload_MultipartWithTooManyParts_ComparesBytes(t *testing.T) {
	parts := make([]string, 2*maxParts+2)
	if sum(t, nil, form("one", "--one--", parts...)) == sum(t, nil, form("two", "--two--", parts...)) {
		t.Error("more parts than the limit were compared")
	}
	if sum(t, nil, form("one", "--one--", parts[:100]...)) != sum(t, nil, form("two", "--two--", parts[:100]...)) {
		t.Error("parts without a header are not compared")
	}
}

// A client chooses the head of a part, so it must not cost memory of many times its size, nor
// be left out of the comparison.
func TestPayload_MultipartWithLongHead_MemoryBounded(t *testing.T) {
	const size = 4 << 20
	for name, body := range map[string]string{
		"no colon":   "--b\r\n" + strings.Repeat("\x00", size),
		"one header": "--b\r\nA: " + strings.Repeat("x", size) + "\r\n\r\n\r\n--b--\r\n",
		"second":     "--b\r\n\r\nfirst\r\n--b\r\nA: " + strings.Repeat("x", size) + "\r\n\r\n\r\n--b--\r\n",
		"cut off":    "--b\r\nA: " + strings.Repeat("x", size),
		"preamble":   strings.Repeat("x\r\n", size/3) + "--b\r\n\r\nfirst\r\n--b--\r\n",
	} {
		hashed := func(body string) string {
			r := httptest.NewRequest("POST", "/upload", strings.NewReader(body))
			r.Header.Set("Content-Type", "multipart/form-data; boundary=b")
			return sum(t, nil, r)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		first := hashed(body)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 3<<20 {
			t.Errorf("%s: allocated %d KiB for a body of %d KiB", name, n>>10, size>>10)
		}
		if hashed(body) != first {
			t.Errorf("%s: a repeat has another payload", name)
		}
		other := []byte(body)
		other[size/2] ^= 1
		if hashed(string(other)) == first {
			t.Errorf("%s: another body has the same payload", name)
		}
	}
}

// Large parts are not large heads.
func TestPayload_MultipartWithLargeParts_BoundaryDoesNotCount(t *testing.T) {
	hashed := func(boundary string) string {
		part := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n" + strings.Repeat("x", 3*maxPartHead) + "\r\n"
		r := httptest.NewRequest("POST", "/upload", strings.NewReader(part+part+"--"+boundary+"--\r\n"))
		r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
		return sum(t, nil, r)
	}
	if hashed("one") != hashed("two") {
		t.Error("a repeat with another boundary has another payload")
	}
}

// The last part of a body can be cut off in its head, and its boundary can end the body.
func TestPayload_MultipartEndsEarly_Compared(t *testing.T) {
	hashed := func(boundary, body string) string {
		r := httptest.NewRequest("POST", "/upload", strings.NewReader(strings.ReplaceAll(body, "*", "--"+boundary)))
		r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
		return sum(t, nil, r)
	}
	const whole = "*\r\nA: 1\r\n\r\nhello\r\n*"
	if hashed("one", whole+"--") != hashed("two", whole+"--\r\n") {
		t.Error("the line end after the last boundary counts")
	}
	for _, c := range [][2]string{{"\r\nA: 1", "\r\nA: 2"}, {"\r\nA: 1\r\n", "\r\nA: 2\r\n"}, {"\r\nA: 1", "--\r\n"}, {"\r\n", "--\r\n"}} {
		if hashed("one", whole+c[0]) == hashed("one", whole+c[1]) {
			t.Errorf("%q and %q have the same payload", c[0], c[1])
		}
	}
}
