package proxy

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/internal/httpname"
	"github.com/semel-go/semel/store"
)

// variants finds the rule that a path would match if the upstream normalizes it:
// capitals, a slash at the end, parameters after a semicolon, an escaped slash, a
// backslash, a suffix such as .json. Many frameworks ignore some of these, and a
// spelling that evades a rule must not weaken it.
type variants struct{ rules *http.ServeMux }

// add registers a rule under its normalized pattern. The first of two rules with one
// normalized pattern stays, so add the strictest first.
func (v *variants) add(pattern string, to *route) {
	method, rest, ok := strings.Cut(pattern, " ")
	if !ok {
		method, rest = "", pattern
	} else {
		method += " "
	}
	rest = strings.ToLower(strings.TrimLeft(rest, " \t"))
	defer func() { _ = recover() }() // ServeMux panics if another rule has the same normalized pattern
	v.rules.Handle(method+rest, to)
}

// find returns the rule that a normalized form of the request's path matches, or nil.
func (v *variants) find(r *http.Request) *route {
	if plain, exact := isPlain(r.URL), r.URL.Path; plain {
		return v.lookup(r, exact)
	}
	folded := fold(r.URL)
	for _, p := range []string{folded, strings.TrimSuffix(folded, path.Ext(folded))} {
		if to := v.lookup(r, p); to != nil {
			return to
		}
	}
	return nil
}

func (v *variants) lookup(r *http.Request, p string) *route {
	for _, end := range []string{"", "/"} {
		if p == "/" && end == "/" {
			break
		}
		asked := *r
		asked.URL = &url.URL{Path: p + end}
		if p == "" {
			asked.URL.Path = "/"
		}
		h, _ := v.rules.Handler(&asked)
		if to, ok := h.(*route); ok {
			return to
		}
	}
	return nil
}

// isPlain reports whether a path is its own normalized form.
func isPlain(u *url.URL) bool {
	if u.RawPath != "" || u.Path != "/" && strings.HasSuffix(u.Path, "/") {
		return false
	}
	return !strings.ContainsFunc(u.Path[1:], changesInFold)
}

// changesInFold reports whether a normalized path never has a character.
func changesInFold(c rune) bool {
	capital := c >= 'A' && c <= 'Z'
	return capital || c <= ' ' || c >= 0x80 || strings.ContainsRune(`;%\.`, c)
}

// fold normalizes a path. It decodes what is escaped twice, too.
func fold(u *url.URL) string {
	p := u.Path
	if twice, err := url.PathUnescape(p); err == nil {
		p = twice
	}
	segments := strings.Split(strings.ReplaceAll(strings.ToLower(p), `\`, "/"), "/")
	for i, s := range segments {
		s, _, _ = strings.Cut(s, ";")
		segments[i] = strings.TrimFunc(s, func(c rune) bool { return c <= ' ' })
	}
	return path.Clean("/" + strings.Join(segments, "/"))
}

// upperMethod returns r with its method in capitals, because the upstream may read it
// so.
func upperMethod(r *http.Request) *http.Request {
	upper := strings.ToUpper(r.Method)
	if upper == r.Method {
		return r
	}
	own := *r
	own.Method = upper
	return &own
}

// protects reports whether the route protects a request's method, in any spelling, or
// the method that a header replaces it by. Package semelhttp decides in the same way.
func (to *route) protects(r *http.Request) bool {
	has := func(method string) bool { return slices.Contains(to.methods, method) } // the configuration has capitals
	return has(strings.ToUpper(r.Method)) || slices.ContainsFunc(httpname.Overrides(r.Header), has)
}

// strictest returns the route that a request has found, or the one that a normalized
// form of its path matches, if that protects the request more.
func (d *router) strictest(found *route, r *http.Request) *route {
	if d.variants == nil {
		return found
	}
	plain := plainHost(upperMethod(r))
	for _, method := range append([]string{plain.Method}, httpname.Overrides(r.Header)...) {
		asked := *plain
		asked.Method = method
		other := d.variants.find(&asked)
		if other == nil || other == found {
			continue
		}
		gain := strength(other, r) - strength(found, r)
		if gain > 0 || gain == 0 && !found.specific {
			found = other
		}
	}
	return found
}

// strength orders routes by how much they protect a request.
func strength(to *route, r *http.Request) int {
	if to.passThrough || !to.protects(r) {
		return 0
	}
	n := 1
	if to.parks {
		n += 4
	}
	if !to.keyOptional {
		n += 2
	}
	if to.fromBody {
		n++
	}
	return n
}

// newVariants registers the rules, the strictest first.
func newVariants(rules []config.Route, routes []*route) *variants {
	v := &variants{http.NewServeMux()}
	order := make([]int, len(rules))
	for i := range order {
		order[i] = i
	}
	rank := func(r *config.Route) int {
		switch {
		case r.PassThrough:
			return 2
		case r.OnDoubt == store.Park:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(&rules[a]) - rank(&rules[b]) })
	for _, i := range order {
		v.add(rules[i].Match, routes[i])
	}
	return v
}
