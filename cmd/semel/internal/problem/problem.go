// Package problem writes refusals of the proxy and of package semelhttp as problem
// documents (RFC 9457).
package problem

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/semel-go/semel/semelhttp"
)

// Refusals of the proxy. Package semelhttp has further ones. Their codes are
// stable.
var (
	NotProxied = semelhttp.Problem{Status: http.StatusNotImplemented, Code: "not_proxied", Title: "Method is not proxied",
		Detail: "CONNECT is not proxied: there is one fixed service behind this proxy."}
	BadTarget = semelhttp.Problem{Status: http.StatusBadRequest, Code: "bad_target", Title: "Request target is not a path"}
	BadPath   = semelhttp.Problem{Status: http.StatusBadRequest, Code: "bad_path", Title: "Path is not in its normal form",
		Detail: "The path must have no empty segment, and no '.' or '..' segment."}
	HopByHop = semelhttp.Problem{Status: http.StatusBadRequest, Code: "protected_header", Title: "Connection header names a protected header",
		Detail: "The Connection header names a header that must reach the service as it is."}
	Ambiguous = semelhttp.Problem{Status: http.StatusBadRequest, Code: "ambiguous_header", Title: "Header could be taken for another",
		Detail: "A header's name differs from that of a protected one only by an underscore."}
	UpgradeRefused = semelhttp.Problem{Status: http.StatusBadRequest, Code: "upgrade_refused", Title: "Protocol cannot be switched",
		Detail: "A request that takes effect once cannot switch to another protocol."}
	KeyReserved = semelhttp.Problem{Status: http.StatusBadRequest, Code: "key_reserved", Title: "Idempotency-Key has a reserved prefix",
		Detail: "Keys that begin with semel-fields: are made by the server. Nothing was done; use another key."}
	PeerRefused = semelhttp.Problem{Status: http.StatusForbidden, Code: "peer_refused", Title: "Only trusted gateways may connect"}
	TenantLimit = semelhttp.Problem{Status: http.StatusTooManyRequests, Code: "tenant_limit", Title: "Too much at a time for one caller",
		Detail: "Nothing was done. Repeat the request with the same key after the time in Retry-After."}
	Overloaded = semelhttp.Problem{Status: http.StatusServiceUnavailable, Code: "overloaded", Title: "Too many requests",
		Detail: "Nothing was done. Repeat the request with the same key after the time in Retry-After."}
	ReplaysFull = semelhttp.Problem{Status: http.StatusServiceUnavailable, Code: "replays_full", Title: "Too many large answers at a time",
		Detail: "The operation is done, and its answer is kept. To get the answer, repeat the request with the same key after the time in Retry-After.", RetryAfter: time.Second}
	AuthorizerUnavailable = semelhttp.Problem{Status: http.StatusServiceUnavailable, Code: "authorizer_unavailable", Title: "Permission to see the earlier answer cannot be checked",
		Detail: "Nothing was done by this request. Repeat it with the same key.", RetryAfter: time.Second}
	BodyTimeout = semelhttp.Problem{Status: http.StatusRequestTimeout, Code: "body_timeout", Title: "Request body did not arrive in time",
		Detail: "Nothing came for too long in the middle of the request. If it has a key, nothing was done; repeat it with that key."}
	Unreachable = semelhttp.Problem{Status: http.StatusServiceUnavailable, Code: "upstream_unreachable", Title: "Service could not be reached",
		Detail: "Nothing was sent to the service. Repeat the request with the same key.", RetryAfter: time.Second}
	UpstreamLost = semelhttp.Problem{Status: http.StatusBadGateway, Code: "upstream_lost", Title: "Answer of the service was lost",
		Detail: "The request was sent to the service, but no answer came. If you repeat it, use the same key, never a new one."}
	UpstreamTimeout = semelhttp.Problem{Status: http.StatusGatewayTimeout, Code: "upstream_timeout", Title: "Service did not answer in time",
		Detail: "The request was sent to the service, but no answer came in time. If you repeat it, use the same key, never a new one."}
)

// RefusalHeader has the code of a refusal, so that another Semel outside knows that the
// answer is no result of the service. The code says whether something may have been done.
// Package semelhttp sets it, too.
const RefusalHeader = "Semel-Refusal"

// docs is where the codes are explained.
const docs = "https://github.com/semel-go/semel/blob/main/docs/reference/errors.md#"

// Write sends p without its Err.
func Write(w http.ResponseWriter, p semelhttp.Problem) {
	doc, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail,omitempty"`
		Code   string `json:"code"`
	}{docs + p.Code, p.Title, p.Status, p.Detail, p.Code})
	if err != nil {
		doc = nil // strings and a number: it cannot fail, and the status says enough
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Language", "en")
	h.Set("Cache-Control", "no-store")
	if p.Code != semelhttp.CodeFailed && p.Code != semelhttp.CodeAttemptsExhausted { // these are results
		h.Set(RefusalHeader, p.Code)
	}
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(doc) // to a client that may be gone
}
