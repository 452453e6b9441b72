package observe

import (
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestCallerOf_PathAndAgent_WithoutIDs(t *testing.T) {
	for path, want := range map[string]string{
		"/": "POST /", "/payments": "POST /payments", "/payments/": "POST /payments/", "/payments/4711": "POST /payments/…",
		"/bad/a": "POST /bad/a", "/bad/b": "POST /bad/b", "/api/v2/order-items/7/x": "POST /api/v2/order-items/…/x", "/4711": "POST /…",
		"/ann@example.org/pay": "POST /…/pay", "/shop.v1.Orders/CreateOrder": "POST /shop.v1.Orders/CreateOrder", "/_bulk": "POST /_bulk",
		"/oauth2/token": "POST /oauth2/token", "/v1/orders:batch": "POST /v1/orders:batch", "//x": "POST //x",
		"/orders/7": "POST /orders/…", "/orders/order-7": "POST /orders/…", "/orders/a17": "POST /orders/…", "/orders/7b2c9fe1": "POST /orders/…",
		"/orders/8e03978e-40d5-43dd-bc93-6894a57f9324": "POST /orders/…", "/orders/" + strings.Repeat("a", 41): "POST /orders/…",
		"/orders/jos\u00e9": "POST /orders/…", "/orders/a b": "POST /orders/…", "/a/b/c/d/e/f/g/h/i/4711": "POST /a/b/c/d/e/f/g/h/*",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://h/", nil)
		r.URL.Path = path
		if got := CallerOf(r).Request; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for agent, want := range map[string]string{
		"curl/8.5.0": "curl/8.5.0", "Mozilla/5.0 (X11; Linux)": "Mozilla/5.0", "": "", "ann@example.org": "", "Go-http-client/2.0": "Go-http-client/2.0",
		"okhttp/4.12.0-user-4711": "", "x\x1b[2J": "",
	} {
		r := httptest.NewRequestWithContext(t.Context(), "odd-method", "http://h/pay", nil)
		r.Header.Set("User-Agent", agent)
		if got := CallerOf(r); got.UserAgent != want || got.Request != "other method /pay" {
			t.Errorf("%q: %+v, want %q", agent, got, want)
		}
	}
}

// Endpoints stay apart while they are few. After that their beginnings stay apart, and then
// all others count together.
func TestCallers_ManyPaths_AreCountedByBeginningThenTogether(t *testing.T) {
	c := callers{}
	add := func(path string) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "http://h/", nil)
		r.URL.Path = path
		c.add(CallerOf(r))
	}
	letters := func(n int) string { return strings.Repeat(string(rune('a'+n%20)), n/20+1) }
	for n := range maxWhole {
		add("/customers/" + letters(n))
	}
	for n := range 50 {
		add("/api/v1/orders/" + letters(n))
		add("/" + letters(n) + "/x")
		add("/customers/" + letters(0))
	}
	for request, want := range map[string]uint64{
		"POST /customers/a": 51, "POST /customers/b": 1, "POST /api/v1/orders/*": 50, "POST /a/*": 1, "POST /a/x": 0, "other requests": 31,
	} {
		if got := c[Caller{Request: request}]; got != want {
			t.Errorf("%s: %d requests, want %d", request, got, want)
		}
	}
	if len(c) != maxCallers+1 {
		t.Errorf("%d callers: %v", len(c), c)
	}
}

// Each result and each kind of doubt has a next step, whose flags exist.
func TestNextSteps_EachClass_NamesFlagsOfProxy(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, l := range resultLines {
		if nextSteps[l.result] == "" {
			t.Errorf("%s has no next step", l.result)
		}
	}
	for _, l := range doubtLines {
		if doubtSteps[l.doubt] == "" {
			t.Errorf("%s has no next step", l.doubt)
		}
		steps = append(steps, doubtSteps[l.doubt])
	}
	for _, step := range nextSteps {
		steps = append(steps, step)
	}
	flags := regexp.MustCompile(`--[a-z0-9-]+`).FindAllString(strings.Join(steps, " "), -1)
	for _, flag := range flags {
		if !regexp.MustCompile(flag + `\b[^-]`).Match(page) {
			t.Errorf("semel proxy has no %s", flag)
		}
	}
	if len(flags) < 15 {
		t.Errorf("only %v were found", flags)
	}
	if step := nextStep(Refused("bad_path")); !strings.HasSuffix(step, "errors.md#bad_path") {
		t.Errorf("a refusal without a step of its own: %q", step)
	}
}

// Duplicates and repeats, which take effect twice today, and answers that leave doubt name
// their callers, too.
func TestReport_DuplicatesAndDoubt_NameCallers(t *testing.T) {
	c := NewCounts(NewMemory(2))
	rule, from := Rule{"http", "/"}, Caller{"POST /payments", "okhttp/4.12.0"}
	c.Add(rule, First, ServerError, from)
	c.Add(rule, First, None, Caller{"POST /orders", ""})
	c.Add(rule, InDoubt, None, from)
	c.Add(rule, InDoubt, None, from)
	c.Add(rule, AfterFirst, None, from)
	c.Add(rule, Again, None, from)
	c.Add(rule, Unobserved, None, from)
	c.Add(rule, Passed, None, Caller{"GET /orders", ""})
	var b strings.Builder
	if err := c.Report().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"until somebody decides\n            2  POST /payments  okhttp/4.12.0\n",
		"the service answered 5xx\n            1  POST /payments  okhttp/4.12.0\n",
		"answered from the record\n            1  POST /payments  okhttp/4.12.0\n",
		"repeats for which no answer is kept: sent to the service again\n            1  POST /payments  okhttp/4.12.0\n",
		"could be compared\n            1  POST /payments  okhttp/4.12.0\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "/orders") {
		t.Errorf("it names a caller who has nothing to do:\n%s", b.String())
	}
}
