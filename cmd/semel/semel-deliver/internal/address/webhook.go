package address

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/webhook"
)

// parseWebhook reads http://HOST/PATH or https://HOST/PATH.
func parseWebhook(a *address, o *SinkOptions) (*Sink, error) {
	text := a.scheme + "://" + a.rest
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, errors.New("write an absolute URL without a user, such as https://example.org/hook; credentials go into --header")
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	return &Sink{shown: input.Masked(u), open: func(ctx context.Context) (outbox.Sink, func() error, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
		if err != nil {
			return nil, nil, fmt.Errorf("no connection: %w; see whether it answers with: curl -i %s://%s", err, u.Scheme, u.Host)
		}
		_ = conn.Close() // it was for the check only
		client := &http.Client{Transport: &withHeader{o.Transport, o.Header}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		sink, err := webhook.New(func(context.Context, *outbox.Message) (webhook.Endpoint, error) {
			return webhook.Endpoint{URL: text, Secret: o.Secret}, nil
		}, &webhook.Options{Client: client, Timeout: o.Timeout})
		return sink, noClose, err
	}}, nil
}

// withHeader sets headers in each request.
type withHeader struct {
	http.RoundTripper
	header http.Header
}

// RoundTrip implements http.RoundTripper.
func (t *withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range t.header {
		r.Header[name] = values
	}
	return t.RoundTripper.RoundTrip(r)
}
