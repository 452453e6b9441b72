package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates of servers and clients, for tests. Make it with
// [NewAuthority].
type Authority struct {
	// File is the PEM file of the authority's own certificate. A process whose
	// SSL_CERT_FILE names it trusts the authority.
	File string

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that keeps its files in a directory.
func NewAuthority(dir string) (*Authority, error) {
	a := &Authority{dir: dir, File: filepath.Join(dir, "ca.pem")}
	own := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redistest"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	cert, err := a.sign(own, nil)
	if err != nil {
		return nil, err
	}
	a.key = cert.PrivateKey.(*ecdsa.PrivateKey)
	a.cert = cert.Leaf
	return a, os.WriteFile(a.File, encode("CERTIFICATE", a.cert.Raw), 0o600)
}

// Remove deletes the authority's files.
func (a *Authority) Remove() error { return os.RemoveAll(a.dir) }

// Pool has the certificate of this authority only.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Certificate makes a certificate that is valid for a day. With names or IP
// addresses it is a server's, without them a client's.
func (a *Authority) Certificate(names ...string) (tls.Certificate, error) {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, n)
		}
	}
	return a.sign(c, a.cert)
}

// sign makes a certificate from a template, with a new key. If parent is nil,
// the certificate signs itself.
func (a *Authority) sign(template, parent *x509.Certificate) (c tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return c, err
	}
	leaf, err := x509.ParseCertificate(raw)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}, err
}

// serverArgs are the arguments for a server that speaks TLS with a certificate
// for the names.
func (a *Authority) serverArgs(names ...string) ([]string, error) {
	c, err := a.Certificate(names...)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalECPrivateKey(c.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		return nil, err
	}
	base := filepath.Join(a.dir, c.Leaf.SerialNumber.String())
	for end, b := range map[string][]byte{".pem": encode("CERTIFICATE", c.Leaf.Raw), ".key": encode("EC PRIVATE KEY", key)} {
		if err := os.WriteFile(base+end, b, 0o600); err != nil {
			return nil, err
		}
	}
	return []string{"--tls-cert-file", base + ".pem", "--tls-key-file", base + ".key", "--tls-ca-cert-file", a.File}, nil
}

func encode(kind string, b []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})
}

// StartTLS is [Start] for a server that speaks TLS, too, on [Server.TLSAddr],
// with a certificate of the authority for the names. The server demands a
// certificate of that authority from clients, unless the arguments
// "--tls-auth-clients", "no" turn that off.
func StartTLS(t testing.TB, a *Authority, names []string, args ...string) *Server {
	t.Helper()
	tlsArgs, err := a.serverArgs(names...)
	if err != nil {
		t.Fatal(err)
	}
	return started(t, &Server{args: append(tlsArgs, args...), tls: true})
}
