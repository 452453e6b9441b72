package scope_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/scope"
)

func TestParse_InvalidRule_ListsChoices(t *testing.T) {
	for _, rule := range []string{"", "tenant", "single:x", "header", "header:", "header:a b", "header:Host", "header:Authorization",
		"header:Connection", "header:semel-tenant", "header:X-Forwarded-For", "jwt", "jwt:", "jwt-unverified:", "jwt-verified:sub", "Single"} {
		_, err := scope.Parse(rule, "--scope")
		if err == nil || !input.Is(err) {
			t.Errorf("%q: got %v", rule, err)
			continue
		}
		for _, choice := range []string{"--scope: ", "single (", "header:NAME (", "jwt:CLAIM (", "jwt-unverified:CLAIM ("} {
			if !strings.Contains(err.Error(), choice) {
				t.Errorf("%q: %v does not say %q", rule, err, choice)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: more than a line: %v", rule, err)
		}
	}
}

func finder(t *testing.T, rule string, keys *scope.KeySet) *scope.Finder {
	t.Helper()
	r, err := scope.Parse(rule, "--scope")
	if err != nil {
		t.Fatal(err)
	}
	f, err := scope.NewFinder(r, keys)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTenant_Single_Shared(t *testing.T) {
	r, err := scope.Parse("single", "--scope")
	if err != nil || !r.Shared() || r.NeedsKeys() || r.Headers() != nil {
		t.Errorf("got %+v, %v", r, err)
	}
	if tenant, err := finder(t, "single", nil).Tenant(httptest.NewRequest("POST", "/", nil)); tenant != "" || err != nil {
		t.Errorf("got %q, %v", tenant, err)
	}
}

// A request that does not name a tenant is not one whose tenant cannot be read or is wrong.
func TestAbsent_OnlyIfNothingIsNamed(t *testing.T) {
	for _, c := range []struct {
		rule   string
		values []string
		want   bool
	}{
		{"single", nil, false},
		{"header:Authorized", nil, true}, {"header:Authorized", []string{" "}, true},
		{"header:Authorized", []string{"ann"}, false}, {"header:Authorized", []string{"", "ann"}, false}, {"header:Authorized", []string{"a,b"}, false},
		{"jwt:sub", nil, true}, {"jwt:sub", []string{"Basic YTpi"}, true}, {"jwt-unverified:sub", []string{""}, true},
		{"jwt:sub", []string{"bearer x"}, false}, {"jwt-unverified:sub", []string{"Basic YTpi", "Bearer x"}, false}, {"jwt:sub", []string{"Bearer\tx"}, false},
	} {
		rule, err := scope.Parse(c.rule, "--scope")
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("POST", "/", nil)
		r.Header["Authorized"], r.Header["Authorization"] = c.values, c.values
		if got := rule.Absent(r); got != c.want {
			t.Errorf("%s, %q: %v", c.rule, c.values, got)
		}
	}
}

func TestTenant_Header_ExactlyOneValue(t *testing.T) {
	f := finder(t, "header:x-tenant", nil)
	for name, c := range map[string]struct {
		values []string
		want   string
	}{
		"one":              {[]string{"ann"}, "ann"},
		"with spaces":      {[]string{"  ann "}, "ann"},
		"none":             {nil, ""},
		"empty":            {[]string{""}, ""},
		"only spaces":      {[]string{"  "}, ""},
		"two":              {[]string{"ann", "bob"}, ""},
		"the same twice":   {[]string{"ann", "ann"}, ""},
		"joined":           {[]string{"ann, bob"}, ""},
		"a control":        {[]string{"a\x01b"}, ""},
		"as long as can":   {[]string{strings.Repeat("x", 255)}, strings.Repeat("x", 255)},
		"longer than that": {[]string{strings.Repeat("x", 256)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("POST", "/", nil)
			for _, v := range c.values {
				r.Header.Add("X-Tenant", v)
			}
			got, err := f.Tenant(r)
			if got != c.want || (c.want == "") != errors.Is(err, scope.ErrUnknown) {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestHeaders_NamesDecidingHeader(t *testing.T) {
	for rule, want := range map[string]string{"header:x-tenant": "X-Tenant", "jwt:sub": "Authorization", "jwt-unverified:sub": "Authorization"} {
		r, err := scope.Parse(rule, "--scope")
		if err != nil || len(r.Headers()) != 1 || r.Headers()[0] != want {
			t.Errorf("%s: got %q, %v", rule, r.Headers(), err)
		}
	}
}

func TestTenant_ZeroRule_Unknown(t *testing.T) {
	f, err := scope.NewFinder(scope.Rule{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Tenant(httptest.NewRequest("POST", "/", nil)); !errors.Is(err, scope.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	jwt, err := scope.Parse("jwt:sub", "--scope")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scope.NewFinder(jwt, nil); err == nil {
		t.Error("a jwt rule is taken without a key set")
	}
}
