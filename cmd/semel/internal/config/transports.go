package config

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
	"github.com/semel-go/semel/internal/httpname"
)

// Transports are the options of connections: TLS, gateways and switched protocols.
// Nil: not set.
type Transports struct {
	TLSCert     *string `yaml:"tls-cert" name:"tls-cert" placeholder:"FILE" group:"TLS" help:"Serve TLS with this certificate chain (PEM). All files of this group are read again when they change."`
	TLSKey      *string `yaml:"tls-key" name:"tls-key" placeholder:"FILE" group:"TLS" help:"The private key of tls-cert."`
	TLSClientCA *string `yaml:"tls-client-ca" name:"tls-client-ca" placeholder:"FILE" group:"TLS" help:"Clients must have a certificate of one of these authorities (mutual TLS)."`

	UpstreamCA   *string `yaml:"upstream-ca" name:"upstream-ca" placeholder:"FILE" group:"TLS" help:"The authorities that the upstream's certificate is checked with (default: the system's)."`
	UpstreamCert *string `yaml:"upstream-cert" name:"upstream-cert" placeholder:"FILE" group:"TLS" help:"The proxy's certificate for the upstream (mutual TLS)."`
	UpstreamKey  *string `yaml:"upstream-key" name:"upstream-key" placeholder:"FILE" group:"TLS" help:"The private key of upstream-cert."`
	HookCA       *string `yaml:"hook-ca" name:"hook-ca" placeholder:"FILE" group:"TLS" help:"The authorities that the certificates of reconcile-url and authorize-url are checked with (default: the system's)."`
	HookCert     *string `yaml:"hook-cert" name:"hook-cert" placeholder:"FILE" group:"TLS" help:"The proxy's certificate for the hooks."`
	HookKey      *string `yaml:"hook-key" name:"hook-key" placeholder:"FILE" group:"TLS" help:"The private key of hook-cert."`

	TrustedGateways  *[]string `yaml:"trusted-gateways" name:"trusted-gateways" placeholder:"ADDR,…" group:"Whose keys" help:"Addresses and networks, such as 10.0.0.0/8, that may connect; also unix, for a Unix socket. Any other peer is answered 403. Set it with header:NAME and jwt-unverified:CLAIM (default: all may connect)."`
	ProtectedHeaders *[]string `yaml:"protected-headers" name:"protected-headers" placeholder:"NAME,…" group:"Whose keys" help:"Headers that a gateway sets and that the service or a hook trusts. A request is answered 400 if its Connection header would remove one of them, or if it has a header whose name differs from one of them only in hyphens and underscores."`
	Upgrades         *[]string `yaml:"upgrades" name:"upgrades" placeholder:"NAME,…" group:"Where" help:"Protocols that a connection may switch to (default websocket). An offer of any other, such as h2c, is ignored."`
}

// Connections is the resolved form of Transports.
type Connections struct {
	Listener, Upstream, Hooks tlsfile.Files

	Gateways   []netip.Prefix // nil: all peers may connect
	SocketPeer bool           // peers on a Unix socket may connect
	Protected  []string
	Upgrades   []string // in lower case
}

// connections resolves the options of connections. The URLs, which are nil if they are not
// given, say whether there is TLS.
func (r *resolver) connections(o *Transports, upstream *url.URL, hooks ...*url.URL) Connections {
	c := Connections{
		Listener:  tlsfile.Files{Cert: or(o.TLSCert, ""), Key: or(o.TLSKey, ""), CA: or(o.TLSClientCA, "")},
		Upstream:  tlsfile.Files{Cert: or(o.UpstreamCert, ""), Key: or(o.UpstreamKey, ""), CA: or(o.UpstreamCA, "")},
		Hooks:     tlsfile.Files{Cert: or(o.HookCert, ""), Key: or(o.HookKey, ""), CA: or(o.HookCA, "")},
		Protected: or(o.ProtectedHeaders, nil),
	}
	for prefix, f := range map[string]tlsfile.Files{"tls": c.Listener, "upstream": c.Upstream, "hook": c.Hooks} {
		if (f.Cert == "") != (f.Key == "") {
			r.bad(prefix+"-cert", f.Cert, "a certificate and its key belong together; give %s-cert and %s-key", prefix, prefix)
		}
	}
	if c.Listener.CA != "" && c.Listener.Cert == "" {
		r.bad("tls-client-ca", c.Listener.CA, "needs tls-cert and tls-key, because clients show certificates over TLS only")
	}
	for _, name := range or(o.TrustedGateways, nil) {
		r.gateway(&c, name)
	}
	r.inClear("upstream", c.Upstream, "upstream", upstream)
	r.inClear("hook", c.Hooks, "reconcile-url or authorize-url", hooks...)
	for _, name := range c.Protected {
		if !httpname.IsToken(name) {
			r.bad("protected-headers", name, "is no header name")
		}
	}
	for _, name := range or(o.Upgrades, []string{"websocket"}) {
		if !httpname.IsToken(name) || strings.HasPrefix(strings.ToLower(name), "h2") {
			r.bad("upgrades", name, "is no protocol that can pass: HTTP/2 inside the tunnel would pass by every rule; write a name such as websocket")
		}
		c.Upgrades = append(c.Upgrades, strings.ToLower(name))
	}
	return c
}

// inClear refuses files for TLS towards URLs of which none has TLS.
func (r *resolver) inClear(prefix string, f tlsfile.Files, names string, urls ...*url.URL) {
	if slices.ContainsFunc(urls, func(u *url.URL) bool { return u != nil && u.Scheme == "https" }) {
		return
	}
	for _, part := range f.Parts() {
		r.bad(prefix+"-"+part, "", "has no effect, because nothing is sent by TLS; give %s an https: URL, or leave the file out", names)
	}
}

// gateway adds a trusted peer.
func (r *resolver) gateway(c *Connections, name string) {
	if c.Gateways == nil {
		c.Gateways = []netip.Prefix{}
	}
	if name == "unix" {
		c.SocketPeer = true
		return
	}
	if a, err := netip.ParseAddr(name); err == nil {
		c.Gateways = append(c.Gateways, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
		return
	}
	p, err := netip.ParsePrefix(name)
	if err != nil {
		r.bad("trusted-gateways", name, "is neither an address nor a network; write one such as 10.1.2.3, 10.0.0.0/8, fd00::/8 or unix")
		return
	}
	c.Gateways = append(c.Gateways, p.Masked())
}

// isSocket returns the path of a Unix socket.
func isSocket(addr string) (path string, ok bool) {
	path, ok = strings.CutPrefix(addr, "unix:")
	return path, ok && filepath.Base(path) != "." && path != ""
}
