// Package login says who sends a request to the console: the user of a log-in with a
// password, or the user whom a gateway names in a header.
package login

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// Login is one way to log in. The zero Login lets everybody on this machine in, without a
// name.
type Login struct {
	path   string // of the file of users
	log    *slog.Logger
	header string // set by a gateway
}

// ByHeader takes the user's name from a header, which a gateway must set on each request.
func ByHeader(name string) *Login { return &Login{header: name} }

// ByPassword takes users and passwords from a file with lines USER:HASH, as
// htpasswd -B writes them. Empty lines and lines with # are skipped. The file is read again
// for each request, so that a user who was removed is out at once. While it cannot be read,
// nobody is let in, and log gets the reason.
func ByPassword(path string, log *slog.Logger) (*Login, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("is no regular file; it is read again for each request")
	}
	_, err := readUsers(path)
	return &Login{path: path, log: log}, err
}

// readUsers returns the bcrypt hashes by user.
func readUsers(path string) (map[string][]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.New(input.Unreadable(err, fmt.Sprintf("make it with: (umask 077; htpasswd -cB %s USER)", path)))
	}
	defer func() { _ = f.Close() }() // nothing was written
	users := map[string][]byte{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		user, hash, ok := strings.Cut(line, ":")
		if _, err := bcrypt.Cost([]byte(hash)); !ok || user == "" || err != nil {
			return nil, fmt.Errorf("line %d is not USER:HASH with a bcrypt hash; make one with: htpasswd -nB USER (package apache2-utils), or mkpasswd -m bcrypt (package whois)", n)
		}
		users[user] = []byte(hash)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(users) == 0 {
		return nil, errors.New("has no user; add one with: htpasswd -B FILE USER (package apache2-utils)")
	}
	return users, nil
}

type nameKey struct{}

// Operator is the name of the user who sent a request, or "".
func Operator(r *http.Request) string {
	name, _ := r.Context().Value(nameKey{}).(string)
	return name
}

// noUser is compared with if there is no such user, so that the time of an answer does
// not tell which users there are.
var noUser = []byte("$2a$10$7EqJtq98hPqEX7fNZaFWoOhi5Ao.d7H0s4pcZ6vBd2PlB9lB1Oe3y")

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
			user, password, _ := r.BasicAuth()
			hash, known := users[user]
			if !known {
				hash = noUser
			}
			if bcrypt.CompareHashAndPassword(hash, []byte(password)) != nil || !known {
				w.Header().Set("WWW-Authenticate", `Basic realm="Semel", charset="UTF-8"`)
				http.Error(w, "Log in with a user and a password of the file of --users.", http.StatusUnauthorized)
				return
			}
			name = user
		case l.header != "":
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
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.IsLoopback()
}
