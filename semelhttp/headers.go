package semelhttp

import (
	"errors"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/httpname"
	"github.com/semel-go/semel/store"
)

var defaultReplayHeaders = []string{
	// They describe the answer.
	"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Content-Range",
	"Location", "Link", "Etag", "Last-Modified", "Retry-After", "Allow", "Vary",
	// Without them a browser keeps the answer from a page of another origin.
	"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers", "Timing-Allow-Origin",
	"Cross-Origin-Resource-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Embedder-Policy",
	// Without them a browser protects its user less.
	"Content-Security-Policy", "Content-Security-Policy-Report-Only", "X-Content-Type-Options", "X-Frame-Options",
	"Strict-Transport-Security", "Referrer-Policy", "Permissions-Policy",
}

// UsualReplayHeaders are the headers that are kept and replayed if
// Options.ReplayHeaders is nil.
func UsualReplayHeaders() []string { return slices.Clone(defaultReplayHeaders) }

// allowList is the set of canonical names that may be kept and replayed.
func allowList(names []string) map[string]bool {
	list := make(map[string]bool, len(names))
	for _, n := range httpname.Canonical(names) {
		if !forbidden(n) {
			list[n] = true
		}
	}
	return list
}

// forbidden reports whether a header is never kept or replayed, even if Options
// lists it: it belongs to one caller, to one connection or to one moment.
func forbidden(name string) bool {
	switch name {
	case "Authorization", "Authentication-Info", "Www-Authenticate", "Cookie", "Clear-Site-Data",
		"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length",
		"Date", "Age", outcomeHeader, refusalHeader, resultHeader, replayedHeader, defaultKeyHeader:
		return true
	}
	return strings.HasPrefix(name, "Set-Cookie") || strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, http.TrailerPrefix)
}

// describesBody reports whether a header has no meaning without the body.
func describesBody(name string) bool {
	return strings.HasPrefix(name, "Content-") && !strings.HasPrefix(name, "Content-Security-Policy") || name == "Etag" || name == "Last-Modified" || name == "Accept-Ranges" ||
		strings.HasSuffix(name, "-Digest") || name == "Digest"
}

// keepable reports whether a header may be kept and replayed. Gone says that the
// body is not kept.
func (c *config) keepable(name string, gone bool) bool {
	return c.replayable[name] && !(gone && describesBody(name))
}

// keptHeaders returns the headers of an answer that its outcome keeps, ordered by
// name, because a map has no order.
func (c *config) keptHeaders(h http.Header, gone bool) []store.Header {
	hopByHop := h["Connection"] // names headers for this connection only
	var keys []string
	for key := range h {
		if name := textproto.CanonicalMIMEHeaderKey(key); c.keepable(name, gone) && !listed(hopByHop, name) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	kept := make([]store.Header, 0, len(keys))
	for _, key := range keys {
		name := textproto.CanonicalMIMEHeaderKey(key)
		for _, v := range h[key] {
			kept = append(kept, store.Header{Name: name, Value: v})
		}
		if len(h[key]) == 0 && name == "Content-Type" {
			kept = append(kept, store.Header{Name: name}) // the handler wants none, so the server must not guess one
		}
	}
	slices.SortStableFunc(kept, func(a, b store.Header) int { return strings.Compare(a.Name, b.Name) })
	return kept
}

// listed reports whether one of the comma-separated lists contains name.
func listed(lists []string, name string) bool {
	for _, list := range lists {
		for n := range strings.SplitSeq(list, ",") {
			if strings.EqualFold(strings.TrimSpace(n), name) {
				return true
			}
		}
	}
	return false
}

// setReplayHeaders puts the headers of an outcome into h. They replace headers of
// the same name, except those that an outer handler has set for the origin of this request.
// If it has set Access-Control-Allow-Origin, the kept Access-Control-Allow-Credentials does not
// count, because the first request may have had another origin.
// Vary gets the names of both, because outer handlers choose for each request, too.
func (c *config) setReplayHeaders(h http.Header, o *store.Outcome) {
	var outer []string
	if len(h["Access-Control-Allow-Origin"]) > 0 {
		outer = append(outer, "Access-Control-Allow-Credentials")
	}
	for i := range o.Header {
		name := textproto.CanonicalMIMEHeaderKey(o.Header[i].Name)
		if strings.HasPrefix(name, "Access-Control-") && len(h[name]) > 0 {
			outer = append(outer, name)
			continue
		}
		if name != "Vary" {
			delete(h, name)
		}
	}
	for i := range o.Header {
		name, v := textproto.CanonicalMIMEHeaderKey(o.Header[i].Name), o.Header[i].Value
		switch {
		case !c.keepable(name, o.Gone) || slices.Contains(outer, name):
		case name == "Content-Type" && v == "":
			h[name] = nil
		case name == "Vary" && listed(h[name], v):
		default:
			h[name] = append(h[name], v)
		}
	}
	h[replayedHeader] = []string{"true"}
	h["Cache-Control"] = []string{"no-store"}
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

// answerDuplicate answers a request for which the handler did not run.
func (c *config) answerDuplicate(w http.ResponseWriter, r *http.Request, o store.Outcome, err error) {
	_, failed := errors.AsType[*semel.Failure](err)
	gone := errors.Is(err, semel.ErrNotKept)
	if c.Authorize != nil && (err == nil || failed || gone || tellsOfKey(err)) {
		if denied := c.Authorize(r); denied != nil {
			if errors.Is(err, store.ErrCorrupt) {
				logUnreadable(r, err)
			}
			c.refuse(w, r, problem(CodeReplayForbidden, denied))
			return
		}
	}
	switch {
	case failed:
		w.Header()[replayedHeader] = []string{"true"}
		fallthrough
	case err != nil && !gone:
		c.refuse(w, r, c.problemOf(err))
	default:
		o.Gone = o.Gone || gone
		c.replay(w, &o)
	}
}

// tellsOfKey reports whether the refusal for err tells the client that the key was
// used before.
func tellsOfKey(err error) bool {
	for _, reason := range []error{semel.ErrInProgress, semel.ErrReleased, semel.ErrMismatch, semel.ErrUnverifiable, semel.ErrParked, semel.ErrExpired, store.ErrCorrupt} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// replay sends a kept outcome. For a tombstone it sends the first answer's status
// and the kept headers that do not describe a body, such as Location.
func (c *config) replay(w http.ResponseWriter, o *store.Outcome) {
	h := w.Header()
	encodes := len(h["Content-Encoding"]) > 0 // an outer handler, so the length will be another one
	c.setReplayHeaders(h, o)
	status := o.Code
	if status < 200 || status > 999 { // the outcome does not come from an HTTP handler, but from a reconciler
		status = http.StatusOK
		if o.Codec == "json" && len(h["Content-Type"]) == 0 && !o.Gone {
			h["Content-Type"] = []string{"application/json"}
		}
	}
	hasBody := !o.Gone && len(o.Body) > 0 && bodyAllowed(status)
	switch {
	case o.Gone:
		h[outcomeHeader] = []string{outcomeNotKept}
		h["Content-Type"] = nil
	case len(h["Content-Type"]) == 0:
		h["Content-Type"] = nil // unknown; the server must not guess that the answer of a reconciler is a page
	}
	if hasBody && !encodes {
		h["Content-Length"] = []string{strconv.Itoa(len(o.Body))}
	}
	w.WriteHeader(status)
	if hasBody {
		_, _ = w.Write(o.Body) // a client that has left will ask again
	}
}

// AllowOrigin lets a page of the request's origin read the answer to w, if origins
// contain its origin or "*". It is for refusals that a handler in front of the
// middleware writes; Options.RefusalOrigins is for the middleware's own.
func AllowOrigin(w http.ResponseWriter, r *http.Request, origins []string) {
	origin := r.Header.Get("Origin")
	if len(origins) == 0 || origin == "" {
		return
	}
	h := w.Header()
	switch {
	case len(h["Access-Control-Allow-Origin"]) > 0: // an outer handler has decided
		return
	case slices.Contains(origins, origin):
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Add("Vary", "Origin")
	case slices.Contains(origins, "*"):
		h.Set("Access-Control-Allow-Origin", "*")
	default:
		h.Add("Vary", "Origin")
		return
	}
	h.Set("Access-Control-Expose-Headers", "Retry-After, "+outcomeHeader+", "+refusalHeader+", "+replayedHeader)
}
