package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/proxy"
	"github.com/semel-go/semel/cmd/semel/internal/scope"
)

const byTenant = "scope: header:X-Tenant\n"

func TestDuplicate_GetsFirstAnswer(t *testing.T) {
	s := play(t, created(), byTenant)
	first, again := s.pay("k", "X-Tenant", "ann"), s.pay("k", "X-Tenant", "ann")
	if first.status != 201 || first.body != "answer 1" || first.replayed() || first.header.Get("Set-Cookie") == "" {
		t.Errorf("first: %+v", first)
	}
	if again.status != 201 || again.body != "answer 1" || !again.replayed() || again.header.Get("Set-Cookie") != "" {
		t.Errorf("again: %+v", again)
	}
	if n := s.backend.count(); n != 1 {
		t.Errorf("the service was asked %d times", n)
	}
}

func TestTenants_EqualKeys_Separate(t *testing.T) {
	s := play(t, created(), byTenant)
	ann, bob := s.pay("k", "X-Tenant", "ann"), s.pay("k", "X-Tenant", "bob")
	if ann.body == bob.body || bob.replayed() {
		t.Errorf("ann got %q, bob %q", ann.body, bob.body)
	}
}

func TestTenant_Unknown_401(t *testing.T) {
	s := play(t, created(), byTenant)
	for name, headers := range map[string][]string{
		"none": nil, "two": {"X-Tenant", "ann", "X-Tenant", "bob"}, "empty": {"X-Tenant", ""}, "joined": {"X-Tenant", "ann,bob"},
	} {
		if r := s.pay("k", headers...); r.status != 401 || !strings.Contains(r.body, `"tenant_missing"`) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if n := s.backend.count(); n != 0 {
		t.Errorf("the service was asked %d times", n)
	}
}

func TestConnectionHeader_NamesProtectedHeader_Refused(t *testing.T) {
	s := play(t, created(), byTenant)
	for _, tokens := range []string{
		"X-Tenant", "x-tenant", "close, X-TENANT", "keep-alive,x-tenant , foo", "Idempotency-Key", "Authorization", "cookie", "Content-Type",
		"content-length", "content-encoding", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Host", "Semel-Fence", "\tX-Tenant\t",
	} {
		if r := s.pay("k", "X-Tenant", "ann", "Connection", tokens); r.status != 400 || !strings.Contains(r.body, `"protected_header"`) {
			t.Errorf("%q: %+v", tokens, r)
		}
	}
	if r := s.pay("k", "X-Tenant", "ann", "Connection", "close", "Connection", "x-tenant"); r.status != 400 {
		t.Errorf("in a second line: %+v", r)
	}
	if n := s.backend.count(); n != 0 {
		t.Errorf("the service was asked %d times", n)
	}
	for _, tokens := range []string{"close", "keep-alive", "X-Other"} {
		if r := s.pay("k"+tokens, "X-Tenant", "ann", "Connection", tokens, "X-Other", "1"); r.status != 201 {
			t.Errorf("%q: %+v", tokens, r)
		}
	}
	for _, r := range s.backend.seen {
		if r.Header.Get("X-Tenant") != "ann" || r.Header.Get("X-Other") != "" && strings.Contains(r.Header.Get("Idempotency-Key"), "X-Other") {
			t.Errorf("the service got %v", r.Header)
		}
	}
}

func TestHeader_UnderscoreLooksProtected_Refused(t *testing.T) {
	s := play(t, created(), byTenant)
	for _, name := range []string{"X_Tenant", "x_tenant", "Idempotency_Key", "Semel_Fence", "X_forwarded-For"} {
		if r := s.pay("k", "X-Tenant", "ann", name, "bob"); r.status != 400 || !strings.Contains(r.body, `"ambiguous_header"`) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := s.pay("k", "X-Tenant", "ann", "My_Header", "1"); r.status != 201 {
		t.Errorf("an innocent one: %+v", r)
	}
}

// A service that reads HTTP_SM_USER cannot tell the headers SM_USER and SM-User apart.
func TestHeader_HyphenLooksProtected_Refused(t *testing.T) {
	s := play(t, created(), "scope: header:SM_USER\n")
	for _, name := range []string{"SM-User", "sm-user"} {
		if r := s.pay("k", "SM_USER", "ann", name, "eve"); r.status != 400 || !strings.Contains(r.body, `"ambiguous_header"`) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := s.pay("k", "SM_USER", "ann", "SM-Other", "1"); r.status != 201 {
		t.Errorf("an innocent one: %+v", r)
	}
}

func TestUpgrade_WithKey_Refused(t *testing.T) {
	s := play(t, created(), "scope: single\nrequire-key: false\nrules: [{match: /free/, pass-through: true}]\n")
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket"}
	if r := s.pay("k", upgrade...); r.status != 400 || !strings.Contains(r.body, `"upgrade_refused"`) {
		t.Errorf("with a key: %+v", r)
	}
	for _, path := range []string{"/pay", "/free/pay"} {
		if r := s.send("POST", path, "", upgrade...); r.status != 201 {
			t.Errorf("without a key, %s: %+v", path, r)
		}
	}
}

// raw sends bytes, and reads one answer.
func raw(t *testing.T, address, request string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res
}

func TestTrailer_ProtectedName_Dropped(t *testing.T) {
	s := play(t, created(), byTenant)
	res := raw(t, s.URL, "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nX-Tenant: ann\r\nTransfer-Encoding: chunked\r\nTrailer: X-Tenant, X-Sum\r\n\r\n"+
		"0\r\nX-Tenant: bob\r\nX-Sum: 42\r\n\r\n")
	if res.StatusCode != 201 {
		t.Fatalf("%+v", res)
	}
	if got := s.backend.seen[0].Trailer; len(got) != 1 || got.Get("X-Sum") != "42" {
		t.Errorf("the service got the trailers %v", got)
	}
}

func TestRequestTarget_OtherHost_StillGoesToUpstream(t *testing.T) {
	s := play(t, created(), "scope: single\n")
	for request, want := range map[string]int{
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n":           501,
		"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n":                                         200, // net/http answers it by itself
		"POST * HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n": 400,
		"GET http://evil.example/x HTTP/1.1\r\nHost: evil.example\r\n\r\n":              201,
	} {
		if res := raw(t, s.URL, request); res.StatusCode != want {
			t.Errorf("%q: %s, want %d", request, res.Status, want)
		}
	}
	if n := s.backend.count(); n != 1 || s.backend.seen[0].RequestURI != "/x" || "http://"+s.backend.seen[0].Host != s.backend.URL {
		t.Errorf("the service got %d requests: %v", n, s.backend.seen)
	}
}

func TestKeyHeader_Twice_Refused(t *testing.T) {
	s := play(t, created(), "scope: single\nrequire-key: true\n")
	for name, headers := range map[string][]string{
		"two lines": {"Idempotency-Key", "a", "Idempotency-Key", "b"}, "joined": {"Idempotency-Key", "a, b"}, "empty": {"Idempotency-Key", ""},
	} {
		if r := s.send("POST", "/", "", headers...); r.status != 400 || !strings.Contains(r.body, `"key_malformed"`) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := s.send("POST", "/", ""); r.status != 400 || !strings.Contains(r.body, `"key_missing"`) {
		t.Errorf("none: %+v", r)
	}
	if n := s.backend.count(); n != 0 {
		t.Errorf("the service was asked %d times", n)
	}
}

// A service that reads SM_User as SM_USER takes the trailer for the tenant, too.
func TestTrailer_LooksProtectedWithUnderscore_Dropped(t *testing.T) {
	s := play(t, created(), "scope: header:SM_USER\n")
	res := raw(t, s.URL, "POST / HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nSM_USER: ann\r\nTransfer-Encoding: chunked\r\nTrailer: SM_USER, SM-User, X-Sum\r\n\r\n"+
		"0\r\nSM_USER: bob\r\nSM-User: bob\r\nX-Sum: 42\r\n\r\n")
	if res.StatusCode != 201 {
		t.Fatalf("%+v", res)
	}
	if got := s.backend.seen[0].Trailer; len(got) != 1 || got.Get("X-Sum") != "42" {
		t.Errorf("the service got the trailers %v", got)
	}
}

// With such names the proxy would refuse each request that has one, and say nothing.
func TestCheckHeaders_NameAlwaysRefused_IsMistake(t *testing.T) {
	for doc, want := range map[string]string{
		"scope: header:SM_USER\nprotected-headers: [SM-USER]\n":                                                     `scope: "Sm_user"`,
		"scope: header:X_Forwarded_For\n":                                                                           `scope: "X_forwarded_for"`,
		"scope: single\nkey-headers: [Idempotency_Key, Idempotency-Key]\n":                                          `key-headers: "Idempotency_key"`,
		"scope: single\nkey-headers: [Semel_Key]\n":                                                                 `key-headers: "Semel_key"`,
		"scope: header:X-User\nprotected-headers: [X-Group, X_User]\n":                                              `protected-headers: "X_user"`,
		"scope: header:SM_USER\nprotected-headers: [SM_GROUP, X_Forwarded_Uri]\nkey-headers: [X_Key, Request-Id]\n": "",
	} {
		file, err := config.Parse("f.yaml", []byte("upstream: http://127.0.0.1:1\n"+doc))
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Resolve(&config.Options{}, file)
		if err != nil {
			t.Fatal(err)
		}
		rule, err := scope.Parse(c.Scope, "scope")
		if err != nil {
			t.Fatal(err)
		}
		err = proxy.CheckHeaders(c, rule)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Count(err.Error(), "refused") != 1) {
			t.Errorf("%q: %v, want %s", doc, err, want)
		}
	}
}
