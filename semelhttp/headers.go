package semelhttp

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/semel-go/semel/store"
)

var defaultReplayHeaders = []string{
	"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Content-Range",
	"Location", "Link", "Etag", "Last-Modified", "Retry-After", "Allow",
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

// kept is what an outcome keeps of the headers of an answer, by name, for a
// map has no order. It uses room, if that is enough, instead of new memory.
func (c *config) kept(s *snapshot, gone bool, room []store.Header) []store.Header {
	hop := s.values("Connection") // names headers that are for this connection only
	kept := room[:0]
	for i := range s.lines {
		name := s.lines[i].name
		if !c.replayable[name] { // it is not listed, or its name is not canonical
			name = textproto.CanonicalMIMEHeaderKey(name)
		}
		if !c.keepable(name, gone) || named(hop, name) {
			continue
		}
		for _, v := range s.lines[i].values {
			kept = append(kept, store.Header{Name: name, Value: v})
		}
		if len(s.lines[i].values) == 0 && name == "Content-Type" {
			kept = append(kept, store.Header{Name: name}) // the handler wants none: the server must not guess one
		}
	}
	if len(kept) > 1 {
		slices.SortStableFunc(kept, func(a, b store.Header) int { return strings.Compare(a.Name, b.Name) })
	}
	return kept
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

// replayed puts the headers of an outcome into h, in place of those of the
// same name.
func (c *config) replayed(h http.Header, o *store.Outcome) {
	all := make([]string, 0, len(o.Header)+2)
	one := func(v string) []string {
		all = append(all, v)
		return all[len(all)-1 : len(all) : len(all)]
	}
	for i := range o.Header {
		delete(h, textproto.CanonicalMIMEHeaderKey(o.Header[i].Name))
	}
	for i := range o.Header {
		name, v := textproto.CanonicalMIMEHeaderKey(o.Header[i].Name), o.Header[i].Value
		if !c.keepable(name, o.Gone) {
			continue
		}
		before := h[name]
		switch {
		case name == "Content-Type" && v == "":
			h[name] = nil
		case len(before) > 0:
			h[name] = append(before, v)
		default:
			h[name] = one(v)
		}
	}
	h[c.ReplayedHeader] = one("true")
	if !c.CacheReplays {
		h["Cache-Control"] = one("no-store")
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
