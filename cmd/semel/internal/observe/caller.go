package observe

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Caller says from where requests came, without an address, a query, a header but the first
// word of User-Agent, or a segment of the path that may be an ID.
type Caller struct {
	Request   string `json:"request"`              // such as "POST /v1/payments/…/refunds"
	UserAgent string `json:"user_agent,omitempty"` // such as "okhttp/4.12.0"
}

// CallerCount is how many requests with one result came from a Caller.
type CallerCount struct {
	Caller
	Count uint64 `json:"count"`
}

const (
	// maxWhole is how many callers of a result are told apart by their whole paths.
	maxWhole = 20
	// maxCallers is how many are told apart in all, the others by the beginning of their
	// paths; the rest counts as one.
	maxCallers  = 40
	maxSegments = 8  // of a path
	maxSegment  = 40 // bytes of a segment
)

// otherCallers stands for all callers beyond maxCallers.
var otherCallers = Caller{Request: "other requests"}

var (
	plainMethod  = regexp.MustCompile(`^[A-Z]{1,12}$`)
	prefixOfPath = regexp.MustCompile(`^(?:api|rest|v[0-9]{1,2})$`)
	plainSegment = regexp.MustCompile(`^[.:_-]*[A-Za-z]+[0-9]?(?:[.:_-]+[A-Za-z]+[0-9]?)*$`)
	product      = regexp.MustCompile(`^[A-Za-z][A-Za-z._-]{0,30}(?:/[0-9][0-9.]{0,15})?$`)
)

// CallerOf is the caller of a request.
func CallerOf(r *http.Request) Caller {
	c := Caller{Request: "other method"}
	if plainMethod.MatchString(r.Method) {
		c.Request = r.Method
	}
	c.Request += " " + shown(r.URL.Path)
	if word, _, _ := strings.Cut(r.UserAgent(), " "); product.MatchString(word) {
		c.UserAgent = word
	}
	return c
}

// shown is a path in which "…" stands for each segment that may be an ID. After maxSegments
// segments "*" stands for the rest.
func shown(path string) string {
	segments := strings.SplitN(strings.TrimPrefix(path, "/"), "/", maxSegments+1)
	for i, s := range segments {
		switch {
		case i == maxSegments:
			segments[i] = "*"
		case s != "" && (len(s) > maxSegment || !plainSegment.MatchString(s)):
			segments[i] = "…"
		}
	}
	return "/" + strings.Join(segments, "/")
}

// beginning is a request with its path up to the first segment that is no version or the
// like. "*" stands for the rest.
func beginning(request string) string {
	method, path, _ := strings.Cut(request, " /")
	b := method + " "
	segments := strings.Split(path, "/")
	for i, s := range segments {
		b += "/" + s
		if i < len(segments)-1 && (i == 2 || !prefixOfPath.MatchString(s)) {
			return b + "/*"
		}
	}
	return b
}

// namesCallers reports whether it matters from where the requests of a result came: it does
// not for first calls, and for requests that the proxy does not protect anyway.
func (r Result) namesCallers() bool { return r != First && r != Passed }

// callers counts the callers of one result.
type callers map[Caller]uint64

func (c callers) add(from Caller) {
	if _, known := c[from]; !known && len(c) >= maxWhole {
		from.Request = beginning(from.Request)
	}
	if _, known := c[from]; !known && len(c) >= maxCallers {
		from = otherCallers
	}
	c[from]++
}

// count counts a caller at a cell.
func count[K ~string](by map[cell[K]]callers, at cell[K], from Caller) {
	if by[at] == nil {
		by[at] = callers{}
	}
	by[at].add(from)
}

// list has the most frequent caller first.
func (c callers) list() []CallerCount {
	var list []CallerCount
	for from, n := range c {
		list = append(list, CallerCount{from, n})
	}
	slices.SortFunc(list, func(a, b CallerCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Request, b.Request), strings.Compare(a.UserAgent, b.UserAgent))
	})
	return list
}

// nextSteps say what to do about a result.
var nextSteps = map[Result]string{
	First:        "nothing",
	Again:        "nothing, if they are few; otherwise look at the answers in doubt, which are not kept",
	AfterFirst:   "nothing: the proxy prevents the second effect that they have today",
	DuringFirst:  "have clients repeat a 409 after Retry-After, or set --wait 10s, so that the proxy waits for them",
	InDoubt:      "somebody must decide, by semel inspect resolve or --reconcile-url; or choose --on-doubt retry, if the service tolerates a repeat",
	Mismatch:     "have the client make a new key for each new request, and repeat a request with the same bytes: no new time in its body",
	KeyMissing:   "have the client send Idempotency-Key, make keys of the body by --key-from, or drop --require-key",
	KeyMalformed: "have the client send one key of 1 to 255 printable ASCII characters, such as a UUID",
	Unkeyed:      "have the client send Idempotency-Key, or make keys of the body by --key-from; --require-key refuses such requests",
	Passed:       "nothing; if they change something, add their method to --methods",
	Unobserved:   "nothing, if they are few; otherwise raise --body-timeout, or see why clients leave",

	Refused("tenant_missing"): "say whose request it is: --scope header:NAME, if a gateway sets a header; --scope jwt:CLAIM, if the client has a bearer token; --scope single, if all callers share their keys. " +
		"If the scope is right, have these clients log in, or send what the scope names",
	Refused("body_too_large"):    "raise --max-body, or have the client send less",
	Refused("payload_malformed"): "have the client send the JSON that --key-from or the comparison of payloads reads",
	Refused("tenant_limit"):      "raise --tenant-requests and its like, or have the client slow down",
	Refused("overloaded"):        "raise --max-requests and its like, or add replicas",
	Refused("upgrade_refused"):   "have the client send no key with a WebSocket, or set --upgrades",
}

// doubtSteps say what to do about a kind of doubt.
var doubtSteps = map[Doubt]string{
	ServerError: "choose --on-doubt; if a status says that nothing was done, name it in --no-effect-statuses, and if it is a result, in --final-statuses",
	Silence:     "choose --on-doubt; if the service needs longer, raise --upstream-timeout",
	ClientLeft:  "nothing: the proxy goes on without the client, and keeps the answer",
}

// errorsPage explains all codes.
const errorsPage = "https://github.com/semel-go/semel/blob/main/docs/reference/errors.md#"

// nextStep says what to do about a result.
func nextStep(r Result) string {
	if step, ok := nextSteps[r]; ok {
		return step
	}
	return "see " + errorsPage + strings.TrimPrefix(string(r), refusedPrefix)
}
