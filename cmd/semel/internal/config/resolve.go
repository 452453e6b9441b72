package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/internal/httpname"
)

// Resolve merges the flags, the file, which may be nil, and the defaults, in this
// order of precedence. The error joins one input.Error for each mistake.
func Resolve(flags *Options, file *Source) (*Config, error) {
	r := resolver{flags: flags, file: file}
	merged := Options{}
	var rules []Rule
	if file != nil {
		merged, rules = file.File.Options, file.File.Rules
	}
	overlay(&merged, flags)
	r.empty(reflect.ValueOf(&merged).Elem())
	c := r.config(&merged)
	c.where = r.where
	r.rules(c, &merged, rules)
	return c, errors.Join(r.errs...)
}

type resolver struct {
	flags *Options
	file  *Source
	errs  []error
}

// mayBeEmpty are the options for which an empty text or list has a meaning of its own, or
// is refused elsewhere.
var mayBeEmpty = []string{
	"upstream", "scope", "listen", "store", "host-header", "reconcile-url", "authorize-url", "operation", "on-doubt", "key-headers", "methods",
	"key-from", "upgrades", "replay-headers", "refusal-origins",
}

// empty refuses options that are given without a value, as by a variable of a shell that is
// not set. They would stand for the default, which often is less safe: trusted-gateways
// would trust all peers.
func (r *resolver) empty(options reflect.Value) {
	for i := range options.NumField() {
		name, v := options.Type().Field(i).Tag.Get("yaml"), options.Field(i)
		if v.Kind() == reflect.Struct {
			r.empty(v)
			continue
		}
		if v.IsNil() || slices.Contains(mayBeEmpty, name) {
			continue
		}
		switch v = v.Elem(); v.Kind() {
		case reflect.String:
			if v.Len() == 0 {
				r.bad(name, "", "is empty; give it a value, or leave it out")
			}
		case reflect.Slice:
			if v.Len() == 0 && v.Type().Elem().Kind() == reflect.String {
				r.bad(name, "", "is empty; name at least one, or leave it out")
			}
		default:
		}
	}
}

// where names the place of an option: the flag if it was given, otherwise the file.
func (r *resolver) where(field string) string {
	if r.file != nil && !isSet(reflect.ValueOf(r.flags).Elem(), field) {
		rule, _, _ := strings.Cut(field, ".")
		if _, ok := r.file.lines[rule]; ok {
			return r.file.at(field)
		}
	}
	return "--" + field
}

func (r *resolver) bad(field, value, want string, args ...any) {
	r.errs = append(r.errs, &input.Error{Field: r.where(field), Value: value, Want: fmt.Sprintf(want, args...)})
}

// config resolves all but the rules.
func (r *resolver) config(o *Options) *Config {
	c := &Config{
		Listen: or(o.Listen, "127.0.0.1:8080"), AdminListen: or(o.AdminListen, ""), Store: or(o.Store, "sqlite:semel.db"), MovedFrom: or(o.MovedFrom, ""),
		TrustForwarded: or(o.TrustForwarded, false),
		Scope:          or(o.Scope, ""), JWKS: or(o.JWKS, ""), JWTIssuer: or(o.JWTIssuer, ""), JWTAudience: or(o.JWTAudience, ""),
		KeyHeaders: or(o.KeyHeaders, []string{"Idempotency-Key"}), SecretFile: or(o.SecretFile, ""), EncryptionKeys: or(o.EncryptionKeys, ""), RequireEncrypted: or(o.RequireEncrypted, false), HashKeysFile: or(o.HashKeysFile, ""),
		MaxAttempts: or(o.MaxAttempts, 0), MaxBody: int64(or(o.MaxBody, 10<<20)), MaxOutcome: int(or(o.MaxOutcome, 1<<20)),
		Lease:            r.span("lease", o.Lease, 30*time.Second, 100*time.Millisecond, time.Hour),
		StoreTimeout:     r.span("store-timeout", o.StoreTimeout, 5*time.Second, 10*time.Millisecond, 10*time.Minute),
		Drain:            r.span("drain", o.Drain, 30*time.Second, 0, time.Hour),
		BodyTimeout:      r.span("body-timeout", o.BodyTimeout, time.Minute, 0, 24*time.Hour),
		SweepEvery:       r.span("sweep-every", o.SweepEvery, time.Minute, 0, 24*time.Hour),
		UpstreamIdle:     r.span("upstream-idle", o.UpstreamIdle, 4*time.Second, 0, time.Hour),
		RefusalPause:     r.span("refusal-pause", o.RefusalPause, time.Second, 0, 10*time.Second),
		ReconcileEvery:   r.span("reconcile-every", o.ReconcileEvery, 30*time.Second, 0, 24*time.Hour),
		ReconcileTimeout: r.span("reconcile-timeout", o.ReconcileTimeout, 10*time.Second, 10*time.Millisecond, 10*time.Minute),
		AuthorizeTimeout: r.span("authorize-timeout", o.AuthorizeTimeout, 5*time.Second, 10*time.Millisecond, time.Minute),
		ReconcileURL:     r.url("reconcile-url", o.ReconcileURL), AuthorizeURL: r.url("authorize-url", o.AuthorizeURL),
		Upstream: r.url("upstream", o.Upstream),
	}
	if o.Upstream == nil {
		r.bad("upstream", "", "is required: the service that requests go to, such as http://127.0.0.1:3000")
	}
	if c.RequireEncrypted && c.EncryptionKeys == "" {
		r.bad("require-encrypted", "", "needs encryption-keys")
	}
	if c.Upstream != nil && (c.Upstream.RawQuery != "" || c.Upstream.User != nil) {
		r.bad("upstream", "", "must have no query and no user name")
	}
	switch which := or(o.HostHeader, "upstream"); which {
	case "upstream":
	case "client":
		c.ClientHost = true
	default:
		r.bad("host-header", which, "choose upstream or client")
	}
	r.address("listen", c.Listen)
	if c.AdminListen != "" {
		r.address("admin-listen", c.AdminListen)
	}
	r.count("max-attempts", int64(c.MaxAttempts), 0, 1_000_000)
	r.count("max-body", c.MaxBody, 1, 1<<30)
	r.count("max-outcome", int64(c.MaxOutcome), 1, 64<<20)
	r.keyHeaders(c.KeyHeaders)
	r.compared(c, &o.Compared)
	c.WriteTimeout = r.writeTimeout(o)
	c.Limits = r.limits(&o.Limits, c.MaxBody)
	r.observation(c, &o.Observation)
	c.Connections = r.connections(&o.Transports, c.Upstream, c.ReconcileURL, c.AuthorizeURL)
	c.Protected = httpname.Canonical(c.Protected)
	return c
}

// span is a duration within its limits.
func (r *resolver) span(field string, given *Duration, def, least, most time.Duration) time.Duration {
	d := time.Duration(or(given, Duration(def)))
	if d < least || d > most {
		r.bad(field, d.String(), "must be from %v to %v", Duration(least), Duration(most))
	}
	return d
}

func (r *resolver) count(field string, n, least, most int64) {
	if n < least || n > most {
		r.bad(field, fmt.Sprint(n), "must be from %d to %d", least, most)
	}
}

func (r *resolver) address(field, addr string) {
	if _, ok := isSocket(addr); ok {
		return
	}
	_, port, err := net.SplitHostPort(addr)
	if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil {
		r.bad(field, addr, "write host:port, such as 127.0.0.1:8080, or :8080 for all addresses of this machine, or unix:/run/semel.sock")
	}
}

// url is an absolute http or https URL, or nil.
func (r *resolver) url(field string, given *string) *url.URL {
	if given == nil {
		return nil
	}
	u, err := url.Parse(*given)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "" || !isPort(u.Port()) {
		shown := *given
		if strings.ContainsAny(shown, "@?#") {
			shown = "" // it may contain a secret
		}
		r.bad(field, shown, "write an absolute URL of http or https, such as http://127.0.0.1:3000")
		return nil
	}
	return u
}

// isPort reports whether the port of a URL is one, or is not said.
func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return s == "" || err == nil
}

func or[T any](given *T, def T) T {
	if given == nil {
		return def
	}
	return *given
}

// overlay sets the fields of base that are set in over. Both are pointers to
// the same kind of struct.
func overlay(base, over any) {
	b, o := reflect.ValueOf(base).Elem(), reflect.ValueOf(over).Elem()
	for i := range b.NumField() {
		switch f := o.Field(i); {
		case f.Kind() == reflect.Struct:
			overlay(b.Field(i).Addr().Interface(), f.Addr().Interface())
		case !f.IsNil():
			b.Field(i).Set(f)
		}
	}
}

// isSet reports whether the option of that name is set in a struct of options.
func isSet(v reflect.Value, name string) bool {
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Struct {
			if isSet(f, name) {
				return true
			}
		} else if v.Type().Field(i).Tag.Get("yaml") == name {
			return !f.IsNil()
		}
	}
	return false
}
