package pgwire_test

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/semel-go/semel/store/pgstore/internal/pgwire"
)

// coded is an error of the server.
func coded(code string) error {
	return &pgconn.PgError{Severity: "FATAL", Message: "no", Code: code}
}

// attempts is the error of a client that has tried several times.
func attempts(last error, before ...string) error {
	text := "failed to connect to `user=x`:"
	for _, b := range before {
		text += "\n\t" + b
	}
	return fmt.Errorf("%s\n\t127.0.0.1:1 (db): %w", text, last)
}

func TestExplainConnect_ConnectionFails_CauseOnceAndNextStep(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, Err: errors.New("connection refused")}
	socket := &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: "/run/pg/.s.PGSQL.5433"}, Err: errors.New("no such file")}
	const noTLS = "tls error: server refused TLS connection"
	for want, err := range map[string]error{
		"failed to connect to `user=x`: 127.0.0.1:1 (db): FATAL: no (SQLSTATE 3D000); name a database that is there, or create it with CREATE DATABASE or createdb":                                                                     attempts(coded("3D000"), "127.0.0.1:1 (db): "+noTLS),
		"FATAL: no (SQLSTATE 28000); name a role that is there and that pg_hba.conf lets in, or create it with CREATE ROLE … LOGIN or createuser":                                                                                       coded("28000"),
		"FATAL: no (SQLSTATE 28P01); give the role's password by PGPASSWORD or ~/.pgpass, and see that the URL names the right role":                                                                                                    coded("28P01"),
		"failed to connect to `user=x`: 127.0.0.1:1 (db): dial tcp 127.0.0.1:1: connection refused; see whether the server listens there with: pg_isready -h 127.0.0.1 -p 1":                                                            attempts(refused, "127.0.0.1:1 (db): "+refused.Error()),
		"failed to connect to `user=x`: 127.0.0.2:1 (db): " + noTLS + "; 127.0.0.1:1 (db): FATAL: no (SQLSTATE 3D000); name a database that is there, or create it with CREATE DATABASE or createdb":                                    attempts(coded("3D000"), "127.0.0.2:1 (db): "+noTLS),
		"failed to connect to `user=x`: 127.0.0.1:1 (db): no entry for the host with TLS; 127.0.0.1:1 (db): FATAL: no (SQLSTATE 28P01); give the role's password by PGPASSWORD or ~/.pgpass, and see that the URL names the right role": attempts(coded("28P01"), "127.0.0.1:1 (db): no entry for the host with TLS"),
		"dial unix /run/pg/.s.PGSQL.5433: no such file; see whether the server listens there with: pg_isready -h /run/pg -p 5433":                                                                                                       socket,
		"FATAL: no (SQLSTATE 23505)":  coded("23505"),
		"read tcp 127.0.0.1:1: reset": &net.OpError{Op: "read", Net: "tcp", Addr: refused.Addr, Err: errors.New("reset")},
	} {
		got := pgwire.ExplainConnect(err)
		if got.Error() != want || !errors.Is(got, err) {
			t.Errorf("got  %v\nwant %s", got, want)
		}
	}
	if pgwire.ExplainConnect(nil) != nil {
		t.Error("nil is an error")
	}
}
