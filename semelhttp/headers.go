package semelhttp

import (
	"net/http"
	"net/textproto"
	"strings"

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

// headerLine is a header with its values.
type headerLine struct {
	name   string
	values []string
}

// snapshot is a header map as it was at one time. It copies no values: who
// changes a header later sets or appends, and does not write into the values.
type snapshot struct {
	lines []headerLine
	room  [4]headerLine // spares an allocation for most answers
}

func (s *snapshot) take(h http.Header) {
	s.lines = s.room[:0]
	for name, values := range h {
		s.lines = append(s.lines, headerLine{name, values[:len(values):len(values)]})
	}
}

// is reports whether h still is as it was.
func (s *snapshot) is(h http.Header) bool {
	if len(h) != len(s.lines) {
		return false
	}
	for i := range s.lines {
		now, ok := h[s.lines[i].name]
		if was := s.lines[i].values; !ok || len(now) != len(was) || len(was) > 0 && &now[0] != &was[0] {
			return false
		}
	}
	return true
}

// restore makes h what it was.
func (s *snapshot) restore(h http.Header) {
	clear(h)
	for i := range s.lines {
		h[s.lines[i].name] = s.lines[i].values
	}
}

// kept is what an outcome keeps of the headers of an answer: a copy.
func (c *config) kept(s *snapshot, gone bool) map[string][]string {
	n, size := 0, 0
	for i := range s.lines {
		if c.keepable(textproto.CanonicalMIMEHeaderKey(s.lines[i].name), gone) {
			n++
			size += len(s.lines[i].values)
		}
	}
	if n == 0 {
		return nil
	}
	h, all := make(map[string][]string, n), make([]string, 0, size)
	for i := range s.lines {
		name := textproto.CanonicalMIMEHeaderKey(s.lines[i].name)
		if !c.keepable(name, gone) {
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
