package semelhttp

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/httpname"
)

// Answer is how a request ended, as far as it says whether its operation is done.
type Answer struct {
	// Status is the status of the answer. 0: nobody wrote an answer.
	Status int
	// Header is the header of the answer. Nil: it has none.
	Header http.Header
	// Path is the path of the request, to find a redirect that leads back to it.
	Path string
	// SentPath is the path that the client sent, if an outer handler, such as
	// http.StripPrefix, has cut off the start of Path. Empty: Path is whole.
	SentPath string
	// NotBegun says that the work had not begun: no handler ran, or no byte of the
	// request was sent.
	NotBegun bool
	// Ended says that the request's context ended before an answer was written.
	Ended bool
	// Broken says that the body broke off.
	Broken bool
	// Streamed says that a part of the answer was sent before its end.
	Streamed bool
	// Short says that the body is shorter than the declared Content-Length. It is false until
	// the handler has returned.
	Short bool
}

// Effect says what an answer tells about the operation.
type Effect uint8

const (
	// Doubt means that nobody knows whether the operation took effect.
	Doubt Effect = iota
	// Kept means that the answer is the result: it is kept and replayed.
	Kept
	// NothingDone means that nothing happened: the same request may run again.
	NothingDone
)

// String is the effect in words.
func (e Effect) String() string {
	switch e {
	case Doubt:
		return "doubt"
	case Kept:
		return "kept"
	case NothingDone:
		return "nothing done"
	}
	return "invalid effect"
}

// Verdict is what Judge says about an answer.
type Verdict struct {
	Effect Effect
	// Reason explains the effect, for people.
	Reason string
	// WithoutBody is for Kept: the operation is done, but the body is not kept.
	WithoutBody bool
	// Again says that the same request, sent again later, may get another answer.
	Again bool
}

// Judge says what an answer is. It is the one table that the middleware, the
// sidecar and Transport share; the page docs/http-answers.md explains each row. A
// function of your own for Options.Judge handles its cases and calls Judge for all
// others.
func Judge(a Answer) Verdict {
	switch {
	case a.NotBegun:
		return Verdict{Effect: NothingDone, Reason: "the work had not begun", Again: true}
	case a.Status == 0 && a.Ended:
		return Verdict{Reason: "the context ended before an answer was written", Again: true}
	case a.Status == 0:
		return Verdict{Reason: "no answer was written", Again: true}
	case a.Broken && !a.Streamed:
		return Verdict{Reason: "the body broke off", Again: true}
	case a.Header.Get(outcomeHeader) == outcomeUnknown: // of another Semel inside
		return Verdict{Reason: "it says that nobody knows whether the operation took effect"}
	}
	v := judgeStatus(a.Status)
	switch _, retryAfter := httpname.ParseRetryAfter(a.Header.Get("Retry-After"), time.Now()); {
	case retryAfter && a.Status >= 400 && a.Status < 500 && v.Effect != Doubt:
		v = Verdict{Effect: NothingDone, Reason: "it asks for the same request later", Again: true}
	case (a.Status == http.StatusFound || a.Status == http.StatusSeeOther) && leadsBack(a.Header.Get("Location"), a.Path, a.SentPath):
		v = Verdict{Effect: NothingDone, Reason: "it asks to log in and to come back"}
	case v.Effect == Kept && isRefusal(a.Status, a.Header):
		v = Verdict{Effect: NothingDone, Reason: "another Semel inside refused the request"}
	}
	v.WithoutBody = v.Effect == Kept && (a.Streamed || a.Short || saysNotKept(a.Header))
	return v
}

// saysNotKept reports whether another Semel inside has replayed an answer whose body it
// has not kept. The empty body is then no part of the result.
func saysNotKept(h http.Header) bool { return h.Get(outcomeHeader) == outcomeNotKept }

// isRefusal reports whether another Semel inside has refused the request. A handler that
// passes on the headers of another Semel may add them to its own result, and no refusal has
// a status below 400.
func isRefusal(status int, h http.Header) bool {
	return status >= http.StatusBadRequest && h.Get(refusalHeader) != ""
}

// judgeStatus is the part of the table that depends on the status alone.
func judgeStatus(status int) Verdict {
	switch status {
	case http.StatusMultipleChoices, http.StatusMovedPermanently, http.StatusUseProxy, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return Verdict{Effect: NothingDone, Reason: "it asks for the same request elsewhere"}
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusNetworkAuthenticationRequired,
		statusPageExpired, statusLoginTimeout, statusInvalidToken:
		return Verdict{Effect: NothingDone, Reason: "it asks for other credentials, a payment or a permission"}
	case http.StatusNotAcceptable, http.StatusLengthRequired, http.StatusPreconditionFailed, http.StatusUnsupportedMediaType, http.StatusExpectationFailed,
		http.StatusUpgradeRequired, http.StatusPreconditionRequired, http.StatusRequestHeaderFieldsTooLarge:
		return Verdict{Effect: NothingDone, Reason: "it asks for other headers"}
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return Verdict{Effect: NothingDone, Reason: "it asks for the same request later", Again: true}
	case http.StatusMisdirectedRequest:
		return Verdict{Effect: NothingDone, Reason: "it asks for another connection"}
	case http.StatusLocked:
		return Verdict{Effect: NothingDone, Reason: "it refuses because of a lock"}
	case statusNoResponse, statusClientLeft, statusClientClosed:
		return Verdict{Reason: "the client left before an answer was written"}
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Verdict{Reason: "the server failed", Again: true}
	}
	if status >= 200 && status < 500 {
		return Verdict{Effect: Kept, Reason: "it answers the request"}
	}
	return Verdict{Reason: "the server failed"}
}

// Statuses that no standard has.
const (
	statusPageExpired  = 419 // Laravel: the form's token has expired
	statusLoginTimeout = 440 // IIS
	statusInvalidToken = 498 // ArcGIS
	statusNoResponse   = 444 // nginx: the connection was closed without an answer
	statusClientLeft   = 460 // load balancers of AWS
	statusClientClosed = 499 // nginx and others
)

// leadsBack reports whether a redirect carries one of the paths of its request in its query,
// as redirects to a log-in page do: /login?next=/pay.
func leadsBack(location string, paths ...string) bool {
	_, query, _ := strings.Cut(location, "?")
	query, _, _ = strings.Cut(query, "#")
	for pair := range strings.SplitSeq(query, "&") {
		_, value, _ := strings.Cut(pair, "=")
		value, err := url.QueryUnescape(value)
		if err != nil {
			continue
		}
		if back, err := url.Parse(value); err == nil && back.Path != "" && slices.Contains(paths, back.Path) {
			return true
		}
	}
	return false
}
