// Package hook asks the user's own services: what became of a parked request,
// and whether a caller may still see a kept answer.
package hook

import (
	"net/http"
	"net/url"
	"time"
)

// maxAnswer bounds how much of a hook's answer is read, in bytes.
const maxAnswer = 64 << 20

// Hook is a service to ask. Safe for concurrent use.
type Hook struct {
	url     *url.URL
	timeout time.Duration
	client  *http.Client
	trust   bool // X-Forwarded-* as they come in are true
}

// New makes a Hook; each question takes at most timeout.
func New(u *url.URL, timeout time.Duration) *Hook {
	return &Hook{url: u, timeout: timeout, client: &http.Client{ // no Proxy: what clients sent goes to the service that the user named
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 4 * time.Second},
		// An answer from elsewhere is none: the user named one service.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// TrustForwarded has an authorizer told X-Forwarded-For, -Host and -Proto as
// the upstream is, which gets them as they came in. Call it before the first
// question.
func (h *Hook) TrustForwarded() { h.trust = true }

// Close closes the idle connections.
func (h *Hook) Close() { h.client.CloseIdleConnections() }
