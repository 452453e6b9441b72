// Package hook calls the user's own services: the reconcile hook says whether a
// parked request took effect, and the authorize hook says whether a caller may see
// a kept answer.
package hook

import (
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
)

// maxAnswer bounds how much of a hook's answer is read, in bytes.
const maxAnswer = 64 << 20

// Hook calls one service. Safe for concurrent use.
type Hook struct {
	url     *url.URL
	timeout time.Duration
	client  *http.Client
	trust   bool // X-Forwarded-For, -Host and -Proto as they come in are true

	protected map[string]bool // see Protect

	statusOnly bool // see StatusOnly
}

// New makes a Hook; each question takes at most timeout. The files, which may be nil,
// are for TLS.
func New(u *url.URL, timeout time.Duration, files *tlsfile.Source) *Hook {
	t := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 4 * time.Second} // no Proxy, because the data of clients goes only to the service that the user named
	if files != nil {
		t.DialTLSContext = files.Dial(new(net.Dialer).DialContext, timeout)
	}
	return &Hook{url: u, timeout: timeout, client: &http.Client{
		Transport: t,
		// The hook follows no redirect, because the user named one service.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// TrustForwarded makes Authorize pass incoming X-Forwarded-For, -Host and -Proto
// on, as the upstream gets them. Call it before the first call of Authorize.
func (h *Hook) TrustForwarded() { h.trust = true }

// Protect makes Authorize pass on the incoming headers of these canonical names although they
// begin with X-Forwarded-: they decide the tenant, or a gateway sets them. Call it before the
// first call of Authorize.
func (h *Hook) Protect(names map[string]bool) { h.protected = names }

// StatusOnly returns a Hook whose verdicts have the status of the answer and nothing
// else, for requests with no-store. It shares its connections with h.
func (h *Hook) StatusOnly() *Hook {
	own := *h
	own.statusOnly = true
	return &own
}

// Close closes the idle connections.
func (h *Hook) Close() { h.client.CloseIdleConnections() }
