// Package scope finds the tenant of a request by the rule of --scope.
package scope

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

var (
	// ErrUnknown reports a request without a tenant. The answer is 401.
	ErrUnknown = errors.New("scope: the request has no tenant")
	// ErrUnavailable reports that no key set is loaded, or that the token's key is not in it
	// and a newer one could not be fetched. The answer is 503.
	ErrUnavailable = errors.New("scope: no key set to verify the token with")
	// ErrFetching reports, with ErrUnavailable, that another request fetches the key set now.
	ErrFetching = errors.New("the key set is being fetched")
	// ErrOutdated reports, with ErrUnavailable, that the last fetch of the key set failed.
	// KeySetOptions.Log gets the reason.
	ErrOutdated = errors.New("the key set could not be read again")
)

// Choices explains the values of --scope in the help.
const Choices = `single                all keys are in one space: for a service with one client
header:NAME           the tenant is the one value of this header, which whatever
                      stands in front of semel has authenticated and set
jwt:CLAIM             the tenant is this claim of the bearer token, whose signature
                      and expiry are verified with the key set of --jwks
jwt-unverified:CLAIM  the same, but nothing is verified: only behind a gateway
                      that has verified the token`

// Rule is a parsed --scope. The zero Rule is invalid.
type Rule struct {
	kind kind
	name string // of the header or the claim
}

type kind uint8

const (
	single kind = iota + 1
	header
	verified
	unverified
)

// Parse reads a rule; where is for the message of an error, which lists the
// choices.
func Parse(rule, where string) (Rule, error) {
	bad := func(why string) (Rule, error) {
		return Rule{}, &input.Error{Field: where, Value: rule, Want: why + "choose whose keys are whose: " +
			"single (one key space for all callers), header:NAME (the tenant in a header that a gateway has set), " +
			"jwt:CLAIM (a claim of the bearer token, verified with --jwks) or jwt-unverified:CLAIM (the same, verified by a gateway in front)"}
	}
	prefix, name, named := strings.Cut(rule, ":")
	switch {
	case rule == "":
		return bad("is required; ")
	case prefix == "single" && !named:
		return Rule{kind: single}, nil
	case prefix == "header" && name != "":
		if why := input.UnfitHeader(name); why != "" {
			return bad(why + "; ")
		}
		if name = http.CanonicalHeaderKey(name); strings.HasPrefix(name, "Semel-") {
			return bad("this header is removed on the way to the service, as all Semel- headers are; ")
		}
		return Rule{kind: header, name: name}, nil
	case prefix == "jwt" && name != "":
		return Rule{kind: verified, name: name}, nil
	case prefix == "jwt-unverified" && name != "":
		return Rule{kind: unverified, name: name}, nil
	}
	return bad("")
}

// Shared reports whether all callers share one key space.
func (r Rule) Shared() bool { return r.kind == single }

// NeedsKeys reports whether tokens have to be verified.
func (r Rule) NeedsKeys() bool { return r.kind == verified }

// Bearer reports whether the tenant comes in a bearer token.
func (r Rule) Bearer() bool { return r.kind == verified || r.kind == unverified }

// Headers are the headers that hold the tenant. They must reach the upstream
// unchanged.
func (r Rule) Headers() []string {
	switch r.kind {
	case header:
		return []string{r.name}
	case verified, unverified:
		return []string{"Authorization"}
	default:
		return nil
	}
}

// Absent reports whether a request does not even try to name its tenant: the header is not
// there or is empty, or there is no bearer token. A tenant that cannot be read, or a token that
// is not valid, is not absent.
func (r Rule) Absent(q *http.Request) bool {
	for _, name := range r.Headers() {
		for _, value := range q.Header[name] {
			value = strings.ToLower(strings.Trim(value, " \t"))
			if value != "" && (r.kind == header || strings.HasPrefix(value, "bearer")) {
				return false
			}
		}
	}
	return !r.Shared()
}

// Finder finds the tenants of requests. Safe for concurrent use.
type Finder struct {
	rule Rule
	keys *KeySet
}

// NewFinder makes a Finder; keys are needed for a rule that NeedsKeys.
func NewFinder(rule Rule, keys *KeySet) (*Finder, error) {
	if rule.NeedsKeys() && keys == nil {
		return nil, errors.New("scope: a jwt rule without a key set")
	}
	return &Finder{rule: rule, keys: keys}, nil
}

// Tenant returns the tenant of a request. It is empty only if all callers share
// one key space. The error wraps ErrUnknown or ErrUnavailable and contains no part
// of a token.
func (f *Finder) Tenant(r *http.Request) (string, error) {
	switch f.rule.kind {
	case single:
		return "", nil
	case header:
		v, err := one(r, f.rule.name)
		if err != nil {
			return "", err
		}
		return checked(v)
	case verified, unverified:
		token, err := bearer(r)
		if err != nil {
			return "", err
		}
		claims, err := f.claims(r.Context(), token)
		if err != nil {
			return "", err
		}
		v, err := text(claims, f.rule.name)
		if err != nil {
			return "", err
		}
		return checked(v)
	}
	return "", fmt.Errorf("%w: no rule", ErrUnknown)
}

// Ready returns nil if Tenant can work: the key set is loaded, if one is needed.
func (f *Finder) Ready(ctx context.Context) error {
	if f.rule.NeedsKeys() {
		return f.keys.ready(ctx)
	}
	return nil
}

// one returns the value of a header that must occur once, because the upstream may
// use any of several values.
func one(r *http.Request, name string) (string, error) {
	values := r.Header.Values(name)
	if len(values) != 1 || strings.Contains(values[0], ",") {
		return "", fmt.Errorf("%w: the header %s must have exactly one value", ErrUnknown, name)
	}
	return strings.Trim(values[0], " \t"), nil // as HTTP does, so that the tenant is the value that the upstream gets
}

const maxTenant = 255

func checked(tenant string) (string, error) {
	if tenant == "" || len(tenant) > maxTenant {
		return "", fmt.Errorf("%w: the tenant must have 1 to %d bytes", ErrUnknown, maxTenant)
	}
	if strings.ContainsFunc(tenant, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", fmt.Errorf("%w: the tenant has a control character", ErrUnknown)
	}
	return tenant, nil
}

func bearer(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", fmt.Errorf("%w: exactly one Authorization header is needed", ErrUnknown)
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	token = strings.Trim(token, " \t")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", fmt.Errorf("%w: a bearer token is needed", ErrUnknown)
	}
	return token, nil
}
