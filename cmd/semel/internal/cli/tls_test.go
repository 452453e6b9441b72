//go:build unix

package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.key, a.cert, a.pem = a.make(template, nil)
	return a
}

func (a *authority) make(template, parent *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return key, cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// issue writes a certificate for 127.0.0.1 and its key to cert and key.
func (a *authority) issue(serial int64, cert, key string) {
	a.t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	k, _, doc := a.make(template, a.cert)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	for path, doc := range map[string][]byte{cert: doc, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})} {
		if err := os.WriteFile(path, doc, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
}

// The error names the option whose file is bad.
func TestProxy_BadTLSFile_NamesItsOption(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	cert, key, none := filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "none")
	a.issue(1, cert, key)
	for option, args := range map[string][]string{
		"--tls-client-ca": {"--tls-cert", cert, "--tls-key", key, "--tls-client-ca", none},
		"--tls-key":       {"--tls-cert", cert, "--tls-key", none},
		"--tls-cert":      {"--tls-cert", none, "--tls-key", key},
		"--upstream-ca":   {"--upstream-cert", cert, "--upstream-key", key, "--upstream-ca", none},
		"--upstream-key":  {"--upstream-cert", cert, "--upstream-key", none},
		"--hook-ca":       {"--authorize-url", "https://127.0.0.1:1", "--hook-ca", none},
	} {
		r := command(t, append([]string{"proxy", "--upstream", "https://127.0.0.1:1", "--scope", "single", "--store", "memory:"}, args...)...)
		if want := "semel proxy: " + option + ": cannot be used: " + none + ": "; r.code != program.ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: exit code %d\n got %s\nwant %s", args, r.code, r.stderr, want)
		}
	}
}

// The listener, the upstream and the hook all want certificates, and a new
// certificate of the listener needs no restart.
func TestProxy_MutualTLS_EverywhereAndReloaded(t *testing.T) {
	a, dir := newAuthority(t), t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("ca"), a.pem, 0o600); err != nil {
		t.Fatal(err)
	}
	a.issue(10, file("cert"), file("key"))
	a.issue(20, file("own"), file("own.key"))
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	own, err := tls.LoadX509KeyPair(file("own"), file("own.key"))
	if err != nil {
		t.Fatal(err)
	}
	service := func(h http.HandlerFunc) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.TLS = &tls.Config{ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, Certificates: []tls.Certificate{own}}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	upstream := service(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.TLS.PeerCertificates[0].SerialNumber, " ", r.Header.Get("X-Forwarded-Proto"))
	})
	hook := service(func(http.ResponseWriter, *http.Request) {})
	p := start(t, "--listen", "127.0.0.1:0", "--upstream", upstream.URL, "--scope", "single", "--store", "memory:", "--authorize-url", hook.URL,
		"--tls-cert", file("cert"), "--tls-key", file("key"), "--tls-client-ca", file("ca"),
		"--upstream-ca", file("ca"), "--upstream-cert", file("own"), "--upstream-key", file("own.key"),
		"--hook-ca", file("ca"), "--hook-cert", file("own"), "--hook-key", file("own.key"))
	send := func(certs ...tls.Certificate) (serial int64, res *http.Response, body string, err error) {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certs}}}
		r, err := http.NewRequest("POST", "https://"+p.Addr+"/", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		if res, err = c.Do(r); err != nil {
			return 0, nil, "", err
		}
		defer res.Body.Close()
		doc, err := io.ReadAll(res.Body)
		return res.TLS.PeerCertificates[0].SerialNumber.Int64(), res, string(doc), err
	}
	if _, _, _, err := send(); err == nil {
		t.Error("a client without a certificate is served")
	}
	for i := range 2 {
		serial, res, body, err := send(own)
		if err != nil || serial != 10 || body != "20 https" || (res.Header.Get("Idempotent-Replayed") != "") != (i == 1) {
			t.Fatalf("%d: %d, %q, %v\n%s", i, serial, body, err, p.Log())
		}
	}
	if err := os.Chmod(file("key"), 0o644); err != nil {
		t.Fatal(err)
	}
	a.issue(11, file("cert"), file("key"))
	eventuallyOK(t, func() bool {
		serial, _, _, err := send(own)
		return err == nil && serial == 11
	})
	if log := p.Log(); strings.Count(log, "chmod 600 "+file("key")) != 1 {
		t.Errorf("no warning, or several, that others can read the new key: %s", log)
	}
}

func TestProxy_UnixSocket_ServedAndStaleOneReplaced(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201) }))
	defer upstream.Close()
	dir, err := os.MkdirTemp("", "s") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	for range 2 {
		p := start(t, "--listen", "unix:"+path, "--upstream", upstream.URL, "--scope", "header:X-Account", "--trusted-gateways", "unix", "--store", "memory:")
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}}
		r, err := http.NewRequest("POST", "http://a/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		r.Header.Set("X-Account", "ann")
		res, err := c.Do(r)
		if err != nil || res.StatusCode != 201 {
			t.Fatalf("%+v, %v\n%s", res, err, p.Log())
		}
		res.Body.Close()
		p.kill() // it leaves its socket
	}
}
