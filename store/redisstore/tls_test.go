package redisstore

import (
	"crypto/tls"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/semel-go/semel/store/redisstore/redistest"
)

// startSecret is a server that speaks TLS, where a user with these rights is
// the only one.
func startSecret(t *testing.T, a *redistest.Authority, name string, rights []string, args ...string) *redistest.Server {
	t.Helper()
	srv := redistest.StartTLS(t, a, []string{name}, append(args, redistest.Fast...)...)
	c := clientAt(t, srv.URL())
	user := []any{"acl", "setuser", "app", "on", ">pass/word"}
	for _, r := range rights {
		user = append(user, r)
	}
	if err := errors.Join(c.Do(t.Context(), user...).Err(), c.Do(t.Context(), "acl", "setuser", "default", "off").Err()); err != nil {
		t.Fatal(err)
	}
	return srv
}

// A rediss URL verifies the server by the roots of the system, and the user of
// the URL needs no more rights than are documented.
func TestOpen_TLSAndACLUser_Works(t *testing.T) {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		t.Skip("SKIPPED, NOT TESTED: the system's roots are not those of SSL_CERT_FILE here")
	}
	srv := startSecret(t, redistest.Trusted(t), "127.0.0.1", documentedRights(t), "--tls-auth-clients", "no")
	s, err := Open(t.Context(), "rediss://app:pass%2Fword@"+srv.TLSAddr()+"/0", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	useAll(t, s)
	if err := s.Check(t.Context()); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "appendfsync") && !strings.Contains(err.Error(), "appendonly is no") {
		t.Errorf("Check: %v", err)
	}
	for url, says := range map[string]string{
		"rediss://app:hunter2@" + srv.TLSAddr():    "WRONGPASS",
		"rediss://" + srv.TLSAddr():                "NOAUTH",
		"redis://app:pass%2Fword@" + srv.TLSAddr(): "EOF",
	} {
		if err := refused(t, url); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "pass/word") {
			t.Errorf("%s: %v; want %q", url, err, says)
		}
	}
}

func refused(t *testing.T, url string) error {
	t.Helper()
	s, err := Open(t.Context(), url+"?max_retries=-1", nil)
	if err == nil {
		_ = s.Close()
	}
	return err
}

// A server that cannot show that it is who it should be is refused.
func TestOpen_BadCertificate_IsRefused(t *testing.T) {
	trusted := redistest.Trusted(t)
	stranger, err := redistest.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		by   *redistest.Authority
		name string
	}{"an unknown authority's": {stranger, "127.0.0.1"}, "another server's": {trusted, "redis.example"}} {
		srv := startSecret(t, c.by, c.name, documentedRights(t), "--tls-auth-clients", "no")
		err := refused(t, "rediss://app:pass%2Fword@"+srv.TLSAddr())
		_, is := errors.AsType[*tls.CertificateVerificationError](err)
		if !is || strings.Contains(err.Error(), "pass/word") {
			t.Errorf("%s certificate: %v", name, err)
		}
	}
}

// A client certificate, and roots of one's own, come with the client of New.
func TestNew_ClientCertificate_Works(t *testing.T) {
	a, err := redistest.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	srv := startSecret(t, a, "redis.example", documentedRights(t))
	mine, err := a.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	o := &redis.Options{
		Addr: srv.TLSAddr(), Username: "app", Password: "pass/word", MaxRetries: -1,
		TLSConfig: &tls.Config{RootCAs: a.Pool(), ServerName: "redis.example", Certificates: []tls.Certificate{mine}},
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	useAll(t, openOn(t, c, nil))
	without := *o
	without.TLSConfig = &tls.Config{RootCAs: a.Pool(), ServerName: "redis.example"}
	c = redis.NewClient(&without)
	t.Cleanup(func() { _ = c.Close() })
	if f, err := openOn(t, c, nil).Claim(t.Context(), proposal("k")); err == nil || f.Won {
		t.Errorf("without a certificate: won %v, error %v", f.Won, err)
	}
}

// A rediss+cluster URL speaks TLS with each node, also with those that it is
// told of, and verifies each.
func TestOpen_TLSCluster_Works(t *testing.T) {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		t.Skip("SKIPPED, NOT TESTED: the system's roots are not those of SSL_CERT_FILE here")
	}
	t.Parallel()
	trusted := redistest.Trusted(t)
	good := redistest.StartClusterTLS(t, trusted, []string{"127.0.0.1"}, append([]string{"--tls-auth-clients", "no"}, redistest.Fast...)...)
	first, _, _ := strings.Cut(good.TLSURL(), "?") // the others it learns of
	s, err := Open(t.Context(), first, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for i := range 20 { // on all nodes
		complete(t, s, "over TLS "+itoa(i), "x")
	}
	for _, node := range good.Masters {
		if n := clientAt(t, node.URL()).DBSize(t.Context()).Val(); n == 0 {
			t.Error("a node has no record")
		}
	}
	misnamed := redistest.StartClusterTLS(t, trusted, []string{"elsewhere.example"}, append([]string{"--tls-auth-clients", "no"}, redistest.Fast...)...)
	first, _, _ = strings.Cut(misnamed.TLSURL(), "?")
	if err := refused(t, first); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a cluster under another name: %v", err)
	}
}

// A rediss+sentinel URL speaks TLS with the Sentinel, with the master, and
// with the one that takes its place.
func TestOpen_TLSSentinel_Works(t *testing.T) {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		t.Skip("SKIPPED, NOT TESTED: the system's roots are not those of SSL_CERT_FILE here")
	}
	t.Parallel()
	trusted := redistest.Trusted(t)
	f := redistest.StartFailoverTLS(t, trusted, []string{"127.0.0.1"}, redistest.Fast...)
	s, err := Open(t.Context(), f.TLSURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	kept := complete(t, s, "over TLS", "x")
	waitFor(t, "the replica has it", func() bool { return clientAt(t, f.Replica.URL()).DBSize(t.Context()).Val() > 0 })
	f.Master.Kill()
	if err := f.Promoted(); err != nil {
		t.Fatal(err)
	}
	var last error
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last answer: %v", last)
		}
	})
	waitFor(t, "the new master answers", func() bool {
		got, err := s.Get(t.Context(), testKey("over TLS"))
		last = err
		return err == nil && got.Record.Owner == kept.Owner
	})
	complete(t, s, "after the fail-over", "x")
	misnamed := redistest.StartFailoverTLS(t, trusted, []string{"elsewhere.example"}, redistest.Fast...)
	other, err := Open(t.Context(), misnamed.TLSURL(), nil)
	if err == nil {
		_ = other.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a Sentinel under another name: %v", err)
	}
}
