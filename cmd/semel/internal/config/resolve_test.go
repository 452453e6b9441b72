package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store"
)

func resolve(t *testing.T, flags *Options, doc string) (*Config, error) {
	t.Helper()
	s, err := Parse("f.yaml", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return Resolve(flags, s)
}

func to[T any](v T) *T { return &v }

const least = "upstream: http://127.0.0.1:3000\n"

func TestResolve_NoOptions_DefaultsOfHelp(t *testing.T) {
	c, err := resolve(t, &Options{}, least)
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:8080" || c.Store != "sqlite:semel.db" || c.Lease != 30*time.Second || c.MaxBody != 10<<20 ||
		c.MaxOutcome != 1<<20 || c.Drain != 30*time.Second || c.SweepEvery != time.Minute || c.BodyTimeout != time.Minute || c.ClientHost || c.AdminListen != "" {
		t.Errorf("got %+v", c)
	}
	want := Route{Match: "/", Operation: "http", OnDoubt: store.Retry, Methods: []string{"POST", "PATCH"},
		Retention: 24 * time.Hour, UpstreamTimeout: time.Minute}
	if !reflect.DeepEqual(c.Rest, want) {
		t.Errorf("got %+v, want %+v", c.Rest, want)
	}
}

func TestResolve_FlagAndFile_FlagWins(t *testing.T) {
	lease, policy := Duration(5*time.Second), "park"
	c, err := resolve(t, &Options{Lease: &lease, Calls: Calls{OnDoubt: &policy}}, least+"lease: 9s\ndrain: 3s\non-doubt: retry\n")
	if err != nil {
		t.Fatal(err)
	}
	if c.Lease != 5*time.Second || c.Drain != 3*time.Second || c.Rest.OnDoubt != store.Park {
		t.Errorf("got lease %v, drain %v, on doubt %v", c.Lease, c.Drain, c.Rest.OnDoubt)
	}
}

func TestResolve_Rule_OverridesTopLevel(t *testing.T) {
	c, err := resolve(t, &Options{}, least+`
wait: 2s
retention: 7d
rules:
  - match: POST /payments
    on-doubt: park
    operation: payments
    require-key: true
    wait: 3s
  - match: /files/
    pass-through: true
`)
	if err != nil {
		t.Fatal(err)
	}
	pay, files := c.Rules[0], c.Rules[1]
	if pay.OnDoubt != store.Park || pay.Operation != "payments" || !pay.RequireKey || pay.Wait != 3*time.Second || pay.Retention != 7*24*time.Hour {
		t.Errorf("payments: %+v", pay)
	}
	if !files.PassThrough || files.Operation != "http" || files.Wait != 2*time.Second {
		t.Errorf("files: %+v", files)
	}
	if !c.Parks() || c.Retention() != 7*24*time.Hour || c.Rest.OnDoubt != store.Retry {
		t.Errorf("parks %v, retention %v, rest %+v", c.Parks(), c.Retention(), c.Rest)
	}
}

func TestResolve_OutOfRange_ErrorNamesLimits(t *testing.T) {
	for doc, want := range map[string]string{
		"":                                                               `--upstream: is required`,
		"upstream: ftp://x\n":                                            `f.yaml:1: upstream: "ftp://x": write an absolute URL`,
		"upstream: http://a:pw@b:x\n":                                    `f.yaml:1: upstream: write an absolute URL`,
		"upstream: http://a:pw@b\n":                                      `f.yaml:1: upstream: must have no query and no user name`,
		least + "listen: localhost\n":                                    `f.yaml:2: listen: "localhost": write host:port`,
		least + "admin-listen: ':x'\n":                                   `f.yaml:2: admin-listen: ":x": write host:port`,
		least + "lease: 1ms\n":                                           `f.yaml:2: lease: "1ms": must be from 100ms to 1h0m0s`,
		least + "max-attempts: -1\n":                                     `f.yaml:2: max-attempts: "-1": must be from 0 to 1000000`,
		least + "max-body: 2GiB\n":                                       `f.yaml:2: max-body: "2147483648": must be from 1 to 1073741824`,
		least + "on-doubt: maybe\n":                                      `f.yaml:2: on-doubt: "maybe": choose retry or park`,
		least + "host-header: mine\n":                                    `f.yaml:2: host-header: "mine": choose upstream or client`,
		least + "methods: [post]\n":                                      `f.yaml:2: methods: "post": is no method`,
		least + "methods: []\n":                                          `f.yaml:2: methods: is empty`,
		least + "key-headers: [\"a b\"]\n":                               `f.yaml:2: key-headers: "a b": is no header name`,
		least + "key-headers: []\n":                                      `f.yaml:2: key-headers: is empty`,
		least + "trusted-gateways: []\n":                                 `f.yaml:2: trusted-gateways: is empty; name at least one, or leave it out`,
		least + "fingerprint-headers: []\n":                              `f.yaml:2: fingerprint-headers: is empty`,
		least + "protected-headers: []\n":                                `f.yaml:2: protected-headers: is empty`,
		least + "tls-client-ca: ''\n":                                    `f.yaml:2: tls-client-ca: is empty; give it a value, or leave it out`,
		least + "hash-keys-file: ''\n":                                   `f.yaml:2: hash-keys-file: is empty`,
		least + "jwt-issuer: ''\n":                                       `f.yaml:2: jwt-issuer: is empty`,
		least + "upstream-ca: ca.pem\n":                                  `f.yaml:2: upstream-ca: has no effect, because nothing is sent by TLS; give upstream an https: URL`,
		least + "upstream-cert: c\nupstream-key: k\n":                    `f.yaml:2: upstream-cert: has no effect`,
		least + "hook-ca: ca.pem\n":                                      `f.yaml:2: hook-ca: has no effect, because nothing is sent by TLS; give reconcile-url or authorize-url`,
		least + "authorize-url: http://a\nhook-ca: ca.pem\n":             `f.yaml:3: hook-ca: has no effect`,
		least + "rules: [{match: post /a}]\n":                            `f.yaml:2: rules[0].match: "post /a": never matches, because methods count in capitals`,
		least + "key-from: ['']\n":                                       `f.yaml:2: key-from: has an empty field`,
		least + "operation: a#b\n":                                       `f.yaml:2: operation: "a#b": give a name`,
		least + "reconcile-url: http://x\n":                              `f.yaml:2: reconcile-url: "http://x": is asked only about parked requests`,
		least + "reconcile-url: http://u:pw@x\n":                         `f.yaml:2: reconcile-url: "http://u:xxxxx@x": is asked only about parked requests`,
		least + "rules:\n- match: A.b/x\n- match: a.B./x\n":              `f.yaml:4: rules[1].match: "a.B./x": is no pattern, or conflicts with another rule's`,
		least + "rules: [{}]\n":                                          `f.yaml:2: rules[0].match: is required`,
		least + "rules: [{match: POST}]\n":                               `f.yaml:2: rules[0].match: "POST": is no pattern`,
		least + "rules: [{match: '/{x'}]\n":                              `f.yaml:2: rules[0].match: "/{x": is no pattern`,
		least + "rules:\n- match: /a/{x}\n- match: /{x}/a\n":             `f.yaml:4: rules[1].match: "/{x}/a": is no pattern, or conflicts with another rule's`,
		least + "rules:\n- match: /a\n  on-doubt: no\n- match: /a\n":     `f.yaml:4: rules[0].on-doubt: "no": choose retry or park`,
		least + "rules:\n- match: /a\n  retention: 1ms\n- match: /b\n\n": `f.yaml:4: rules[0].retention: "1ms": must be from 1s to 3650d`,
	} {
		_, err := resolve(t, &Options{}, doc)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !input.Is(err) {
			t.Errorf("%s\n got %v\nwant %s…", doc, err, want)
		}
	}
}

func TestResolve_InvalidFlag_ErrorNamesFlag(t *testing.T) {
	_, err := resolve(t, &Options{Lease: to(Duration(1))}, least+"lease: 30s\n")
	if err == nil || !strings.HasPrefix(err.Error(), `--lease: "1ns": must be`) {
		t.Errorf("got %v", err)
	}
	_, err = Resolve(&Options{}, nil)
	if err == nil || err.Error() != "--upstream: is required: the service that requests go to, such as http://127.0.0.1:3000" {
		t.Errorf("got %v", err)
	}
}

func TestResolve_InvalidPattern_ErrorHidesSourceLine(t *testing.T) {
	_, err := resolve(t, &Options{}, least+"rules:\n- match: /a\n- match: /a\n")
	if err == nil || strings.Contains(err.Error(), ".go:") || strings.HasSuffix(err.Error(), ":") {
		t.Errorf("got %v", err)
	}
}

func TestResolve_SeveralMistakes_OneLineEach(t *testing.T) {
	_, err := resolve(t, &Options{}, "lease: 1ms\nwait: 1h\n")
	if lines := input.Lines(err); len(lines) != 3 {
		t.Errorf("got %q", lines)
	}
}

func TestOptions_FlagsAndFields_SameNames(t *testing.T) {
	var names []string
	var walk func(t reflect.Type) error
	walk = func(ty reflect.Type) error {
		for f := range ty.Fields() {
			if f.Anonymous {
				if err := walk(f.Type); err != nil {
					return err
				}
				continue
			}
			if f.Tag.Get("yaml") != f.Tag.Get("name") || f.Tag.Get("help") == "" || f.Type.Kind() != reflect.Pointer {
				return errors.New(f.Name)
			}
			names = append(names, f.Tag.Get("yaml"))
		}
		return nil
	}
	if err := walk(reflect.TypeFor[Options]()); err != nil {
		t.Errorf("%v: yaml and name differ, the help is missing, or it is no pointer", err)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(names) || len(names) < 30 {
		t.Errorf("names: %q", names)
	}
}

// A rule with options that cannot change anything looks as if it protected its requests.
func TestResolve_RuleWithoutEffect_IsMistake(t *testing.T) {
	const with, method = "has no effect with pass-through", "has no effect, because PUT is none of the protected methods (POST, PATCH); add methods: [PUT]"
	for rule, want := range map[string]string{
		"match: /a, pass-through: true, require-key: true":    "require-key: " + with,
		"match: /a, pass-through: true, on-doubt: park":       "on-doubt: " + with,
		"match: /a, pass-through: true, operation: pay":       `operation: "pay": ` + with,
		"match: /a, pass-through: true, upstream-timeout: 2m": "",
		"match: /a, require-key: true":                        "",
		"match: PUT /a, require-key: true":                    "require-key: " + method,
		"match: PUT h.example/a, no-effect-statuses: [404]":   "no-effect-statuses: " + method,
		"match: PUT /a, operation: pay":                       `operation: "pay": ` + method,
		"match: PUT /a, methods: [PUT], require-key: true":    "",
		"match: PUT /a, upstream-timeout: 2m":                 "",
		"match: PUT /a":                                       "",
	} {
		_, err := resolve(t, &Options{}, least+"rules: [{"+rule+"}]\n")
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), "f.yaml:2: rules[0]."+want) || !input.Is(err)) {
			t.Errorf("%s\n got %v\nwant %s", rule, err, want)
		}
	}
}

// An empty list of protocols and a rule's empty list of fields have a meaning of their own.
func TestResolve_EmptyList_MeansNone(t *testing.T) {
	c, err := resolve(t, &Options{}, least+"upgrades: []\nkey-from: [id]\nrules: [{match: /a, key-from: []}]\n")
	if err != nil || len(c.Upgrades) != 0 || len(c.Rules[0].KeyFrom) != 0 || len(c.Rest.KeyFrom) != 1 {
		t.Errorf("%v, %+v", err, c)
	}
}

// The files for hooks are for the one of them that has TLS.
func TestResolve_OneHookHasTLS_FilesTaken(t *testing.T) {
	c, err := resolve(t, &Options{}, least+"on-doubt: park\nreconcile-url: https://a\nauthorize-url: http://127.0.0.1:1\nhook-ca: ca.pem\n")
	if err != nil || c.Hooks.CA != "ca.pem" {
		t.Errorf("%v, %+v", err, c)
	}
}

// A rule with pass-through never parks, even if it inherits on-doubt park.
func TestParks_PassThroughRule_False(t *testing.T) {
	c, err := resolve(t, &Options{}, least+"rules: [{match: /files/, pass-through: true}]\n")
	if err != nil || c.Parks() {
		t.Errorf("parks %v, %v", c.Parks(), err)
	}
	c, err = resolve(t, &Options{}, least+"rules: [{match: /files/, pass-through: true}, {match: /pay, on-doubt: park}]\n")
	if err != nil || !c.Parks() {
		t.Errorf("with one that parks: parks %v, %v", c.Parks(), err)
	}
}
