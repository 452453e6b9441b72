// Package login says who sends a request to the console: the user of a log-in with a
// password, or the user whom a gateway names in a header.
package login

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Login is one way to log in. The zero Login lets everybody on this machine in, without a
// name.
type Login struct {
	path      string // of the file of users
	log       *slog.Logger
	passwords *passwords
	header    string // set by a gateway
	hosts     []string
}

// ByHeader takes the user's name from a header, which a gateway must set on each request. The
// gateway asks by a local name or address, or by one of hosts. A page of another site could
// give its own name the address of this machine and set the header itself.
func ByHeader(name string, hosts []string) *Login { return &Login{header: name, hosts: hosts} }

type nameKey struct{}

// Operator is the name of the user who sent a request, or "".
func Operator(r *http.Request) string {
	name, _ := r.Context().Value(nameKey{}).(string)
	return name
}

// Handler lets users in.
func (l *Login) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var name string
		switch {
		case l.path != "":
			users, err := readUsers(l.path)
			if err != nil {
				l.log.ErrorContext(r.Context(), "the file of --users cannot be used, so nobody can log in", "file", l.path, "error", err)
				http.Error(w, "Nobody can log in now: the file of --users cannot be used. The log of semel console says why.", http.StatusServiceUnavailable)
				return
			}
			user, password, ok := r.BasicAuth()
			if ok {
				ok, err = l.passwords.match(r.Context(), users, user, password)
			}
			if err != nil {
				w.Header().Set("Retry-After", "1")
				http.Error(w, "Many passwords are being checked now. Try again.", http.StatusServiceUnavailable)
				return
			}
			if !ok {
				w.Header().Set("WWW-Authenticate", `Basic realm="Semel", charset="UTF-8"`)
				http.Error(w, "Log in with a user and a password of the file of --users.", http.StatusUnauthorized)
				return
			}
			name = user
		case l.header != "":
			if !isLocalName(r.Host) && !slices.ContainsFunc(l.hosts, func(h string) bool { return strings.EqualFold(h, hostname(r.Host)) }) {
				http.Error(w, "The gateway asks by a name that is not this machine's. If that is right, give semel console this name by --host.", http.StatusForbidden)
				return
			}
			if values := r.Header.Values(l.header); len(values) == 1 {
				name = strings.TrimSpace(values[0])
			}
			if name == "" {
				http.Error(w, "The gateway names no user: there must be one header "+l.header+".", http.StatusUnauthorized)
				return
			}
		case !isLocalName(r.Host):
			// A page of another site can give its own name the address of this machine.
			http.Error(w, "Without a log-in the console answers at 127.0.0.1, [::1] and localhost only.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), nameKey{}, name)))
	})
}

// isLocalName reports whether a Host header names this machine by address or as
// localhost.
func isLocalName(host string) bool {
	host = hostname(host)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// hostname is a Host header without its port, and an address without brackets.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return strings.Trim(host, "[]")
}
