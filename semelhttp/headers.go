package semelhttp

import (
	"net/http"
	"net/textproto"
	"strings"
	"sync/atomic"

	"github.com/semel-go/semel"
)

var defaultReplayHeaders = []string{
	"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition",
	"Location", "Link", "Etag", "Last-Modified", "Retry-After",
}

// allowList holds the canonical names that may be kept and replayed.
func allowList(names []string) map[string]bool {
	list := make(map[string]bool, len(names))
	for _, n := range canonical(names) {
		if !forbidden(n) {
			list[n] = true
		}
	}
	return list
}

// forbidden reports whether a header never leaves a record, whoever lists it:
// it belongs to one caller, to one connection or to one moment.
func forbidden(name string) bool {
	switch name {
	case "Authorization", "Authentication-Info", "Www-Authenticate", "Cookie", "Clear-Site-Data",
		"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length",
		"Date", "Age", outcomeHeader, defaultReplayedHeader, defaultKeyHeader:
		return true
	}
	return strings.HasPrefix(name, "Set-Cookie") || strings.HasPrefix(name, "Proxy-") ||
		strings.HasPrefix(name, "Access-Control-") || strings.HasPrefix(name, http.TrailerPrefix)
}

// ofBody reports whether a header describes the body, and so says nothing
// without it.
func ofBody(name string) bool {
	return strings.HasPrefix(name, "Content-") || name == "Etag" || name == "Last-Modified" || name == "Accept-Ranges" ||
		strings.HasSuffix(name, "-Digest") || name == "Digest"
}

// keepable reports whether a header of an outcome may be kept, or sent.
func (c *config) keepable(name string, gone bool) bool {
	return c.replayable[name] && !(gone && ofBody(name))
}

// kept is what an outcome keeps of the headers of an answer: a copy.
func (c *config) kept(s *snapshot, gone bool) map[string][]string {
	hop := s.values("Connection") // names headers that are for this connection only
	n, size, last := 0, 0, 0
	for i := range s.lines {
		if c.keepable(textproto.CanonicalMIMEHeaderKey(s.lines[i].name), gone) && !named(hop, s.lines[i].name) {
			n, last = n+1, i
			size += len(s.lines[i].values)
		}
	}
	switch {
	case n == 0:
		return nil
	case n == 1 && size == 1:
		return c.common.get(textproto.CanonicalMIMEHeaderKey(s.lines[last].name), s.lines[last].values[0])
	}
	h, all := make(map[string][]string, n), make([]string, 0, size)
	for i := range s.lines {
		name := textproto.CanonicalMIMEHeaderKey(s.lines[i].name)
		if !c.keepable(name, gone) || named(hop, name) {
			continue
		}
		from := len(all)
		all = append(all, s.lines[i].values...)
		if old, twice := h[name]; twice { // written in two spellings
			h[name] = append(old, all[from:]...)
			continue
		}
		h[name] = all[from:len(all):len(all)]
	}
	return h
}

// commonHeader is the last header of one line that was kept. Most answers of a
// route have the same one, their media type, and outcomes are never changed,
// so they can share it.
type commonHeader struct {
	last atomic.Pointer[map[string][]string]
}

func (c *commonHeader) get(name, value string) map[string][]string {
	if last := c.last.Load(); last != nil {
		if values := (*last)[name]; len(values) == 1 && values[0] == value {
			return *last
		}
	}
	h := map[string][]string{name: {value}}
	c.last.Store(&h)
	return h
}

// named reports whether one of the lists of names holds name.
func named(lists []string, name string) bool {
	for _, list := range lists {
		for n := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.TrimSpace(n), name) {
				return true
			}
		}
	}
	return false
}

// replayed puts the headers of an outcome into h, as copies: the outcome may
// be the store's own memory.
func (c *config) replayed(h http.Header, o *semel.Outcome) {
	size := 2
	for _, values := range o.Header {
		size += len(values)
	}
	all := make([]string, 0, size)
	add := func(values ...string) []string {
		from := len(all)
		all = append(all, values...)
		return all[from:len(all):len(all)]
	}
	for name, values := range o.Header {
		if name = textproto.CanonicalMIMEHeaderKey(name); c.keepable(name, o.Gone) {
			h[name] = add(values...)
		}
	}
	h[c.ReplayedHeader] = add("true")
	if !c.CacheReplays {
		h["Cache-Control"] = add("no-store")
	}
}

// isToken reports whether s can be a header's name or a method (RFC 9110).
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}
