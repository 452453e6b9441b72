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
}

// New makes a Hook; each question takes at most timeout.
func New(u *url.URL, timeout time.Duration) *Hook {
	return &Hook{url: u, timeout: timeout, client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 4 * time.Second},
		// An answer from elsewhere is none: the user named one service.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close closes the idle connections.
func (h *Hook) Close() { h.client.CloseIdleConnections() }
