package config

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/internal/httpname"
	"github.com/semel-go/semel/store"
)

// rules resolves the rules, and the route for requests that match no rule.
func (r *resolver) rules(c *Config, o *Options, rules []Rule) {
	operation := or(o.Operation, "http")
	c.Rest = r.route("", &o.Calls)
	c.Rest.Match, c.Rest.Operation = "/", operation
	r.operation("operation", operation)
	seen := http.NewServeMux()
	for i := range rules {
		rule, field := &rules[i], fmt.Sprintf("rules[%d]", i)
		calls := o.Calls
		overlay(&calls, &rule.Calls)
		route := r.route(field+".", &calls)
		route.Match, route.PassThrough, route.Operation = plain(rule.Match), rule.PassThrough, or(rule.Operation, operation)
		r.operation(field+".operation", route.Operation)
		if err := register(seen, route.Match); err != nil {
			r.bad(field+".match", rule.Match, "%v", err)
		} else {
			r.effect(field, rule, &route)
		}
		c.Rules = append(c.Rules, route)
	}
	if c.ReconcileURL != nil && !c.Parks() {
		r.bad("reconcile-url", input.Masked(c.ReconcileURL), "is asked only about parked requests; set on-doubt to park, here or in a rule")
	}
}

// effect refuses the options of a rule that cannot change anything. A rule that passes by
// the proxy, or whose method is not protected, looks as if it protected its requests.
func (r *resolver) effect(field string, rule *Rule, route *Route) {
	method := route.Match[:max(strings.IndexAny(route.Match, " \t"), 0)] // "": each method
	why := ""
	switch {
	case method != strings.ToUpper(method):
		r.bad(field+".match", rule.Match, "never matches, because methods count in capitals; write the method in capitals")
		return
	case route.PassThrough:
		why = "has no effect with pass-through; leave one of them out"
	case method != "" && !slices.Contains(route.Methods, method):
		why = fmt.Sprintf("has no effect, because %s is none of the protected methods (%s); add methods: [%s] to this rule", method, strings.Join(route.Methods, ", "), method)
	default:
		return
	}
	set := reflect.ValueOf(&rule.Calls).Elem()
	for _, name := range names(set.Type()) {
		if name != "upstream-timeout" && isSet(set, name) { // which is for all requests
			r.bad(field+"."+name, "", "%s", why)
		}
	}
	if rule.Operation != nil {
		r.bad(field+".operation", *rule.Operation, "%s", why)
	}
}

// plain returns a pattern with its host in the form of Host.
func plain(pattern string) string {
	end := max(strings.IndexByte(pattern, '/'), 0)
	start := strings.LastIndexAny(pattern[:end], " \t") + 1 // after the method
	return pattern[:start] + Host(pattern[start:end]) + pattern[end:]
}

// Host normalizes a host name without a port: lower case, no dot at the end.
func Host(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

// registeredAt matches the source line in messages of ServeMux.
var registeredAt = regexp.MustCompile(` \(registered at [^)]*\)`)

// register turns ServeMux's panics about patterns into errors.
func register(mux *http.ServeMux, pattern string) (err error) {
	if pattern == "" {
		return errors.New("is required: a pattern such as POST /payments/{id}, or /files/ for all below")
	}
	defer func() {
		if p := recover(); p != nil {
			why, _, _ := strings.Cut(fmt.Sprint(p), "\n")
			err = fmt.Errorf("is no pattern, or conflicts with another rule's: %s", strings.TrimSuffix(registeredAt.ReplaceAllString(why, ""), ":"))
		}
	}()
	mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

// route resolves what a rule says; prefix is "" for the top level.
func (r *resolver) route(prefix string, o *Calls) Route {
	at := func(field string) string {
		if r.file != nil {
			if _, ok := r.file.lines[prefix+field]; ok {
				return prefix + field
			}
		}
		return field
	}
	route := Route{
		Methods: or(o.Methods, []string{http.MethodPost, http.MethodPatch}), RequireKey: or(o.RequireKey, false), KeyFrom: or(o.KeyFrom, nil),
		NoStore: or(o.NoStore, false), Keep5xx: or(o.Keep5xx, false),
		Wait:            r.span(at("wait"), o.Wait, 0, 0, 10*time.Minute),
		Retention:       r.span(at("retention"), o.Retention, 24*time.Hour, time.Second, 3650*24*time.Hour),
		UpstreamTimeout: r.span(at("upstream-timeout"), o.UpstreamTimeout, time.Minute, time.Millisecond, 24*time.Hour),
	}
	r.statuses(at, &route, &o.Statuses)
	policy := or(o.OnDoubt, store.Retry.String())
	if err := route.OnDoubt.UnmarshalText([]byte(policy)); err != nil {
		r.bad(at("on-doubt"), policy, "choose retry or park")
	}
	for _, m := range route.Methods {
		if !httpname.IsToken(m) || m != strings.ToUpper(m) || m == http.MethodConnect {
			r.bad(at("methods"), m, "is no method that can be protected; write it in capitals, such as POST, PUT, PATCH or DELETE")
		}
	}
	if len(route.Methods) == 0 {
		r.bad(at("methods"), "", "is empty; for a rule that protects nothing write pass-through: true")
	}
	if slices.Contains(route.KeyFrom, "") {
		r.bad(at("key-from"), "", "has an empty field; write paths such as order.id")
	}
	return route
}

func (r *resolver) operation(field, name string) {
	if name == "" || len(name) > 100 || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' || c == '#' || c == '"' || c == '\\' }) {
		r.bad(field, name, `give a name of 1 to 100 printable ASCII characters without #, " and \`)
	}
}
