package pgwire

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
)

// ExplainConnect adds to the error of a connection what to do about it, and names each cause
// once. It returns any other error as it is, and nil for nil.
func ExplainConnect(err error) error {
	if code := Code(err); code != "" {
		switch code {
		case "3D000": // no such database
			return fmt.Errorf("%w; name a database that is there, or create it with CREATE DATABASE or createdb", once(err))
		case "28000": // no such role, or no entry in pg_hba.conf
			return fmt.Errorf("%w; name a role that is there and that pg_hba.conf lets in, or create it with CREATE ROLE … LOGIN or createuser", once(err))
		case "28P01": // wrong password
			return fmt.Errorf("%w; give the role's password by PGPASSWORD or ~/.pgpass, and see that the URL names the right role", once(err))
		}
		return err
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" && dial.Addr != nil {
		host, port, serr := net.SplitHostPort(dial.Addr.String())
		if serr != nil { // a Unix socket, such as /tmp/.s.PGSQL.5432
			host, port = filepath.Dir(dial.Addr.String()), strings.TrimPrefix(filepath.Ext(dial.Addr.String()), ".")
		}
		return fmt.Errorf("%w; see whether the server listens there with: pg_isready -h %s -p %s", once(err), host, port)
	}
	return err
}

// shortened is an error with another text.
type shortened struct {
	text string
	error
}

// Error is the other text.
func (s shortened) Error() string { return s.text }

// Unwrap is the error itself.
func (s shortened) Unwrap() error { return s.error }

// once leaves out of the text of an error the attempts to connect that tell nothing new. The
// client connects to each address with and without TLS, and gives each attempt a line.
func once(err error) error {
	const noTLS = "tls error: server refused TLS connection"
	head, rest, ok := strings.Cut(err.Error(), "\n\t")
	if !ok {
		return err
	}
	attempts := strings.Split(rest, "\n\t")
	var left []string
	seen := map[string]bool{}
	for i, a := range attempts {
		address, isRefusal := strings.CutSuffix(a, noTLS)
		if isRefusal && i+1 < len(attempts) && strings.HasPrefix(attempts[i+1], address) { // the next attempt was without TLS
			continue
		}
		if !seen[a] {
			left = append(left, a)
		}
		seen[a] = true
	}
	return shortened{head + " " + strings.Join(left, "; "), err}
}
