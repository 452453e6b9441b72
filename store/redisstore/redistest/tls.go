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

// Authority signs certificates for tests, of servers and of clients. Make it
// with [NewAuthority].
type Authority struct {
	// File has its own certificate, in PEM: with SSL_CERT_FILE a process takes
	// it for one of the system's.
	File string

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that keeps its files in a folder.
func NewAuthority(dir string) (*Authority, error) {
	a := &Authority{dir: dir, File: filepath.Join(dir, "ca.pem")}
	is := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redistest"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	cert, err := a.sign(is, nil)
	if err != nil {
		return nil, err
	}
	a.key = cert.PrivateKey.(*ecdsa.PrivateKey)
	a.cert = cert.Leaf
	return a, os.WriteFile(a.File, encode("CERTIFICATE", a.cert.Raw), 0o600)
}

// Pool has this authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Certificate is for the names of a server, which may be addresses, or for a
// client. It is good for a day.
func (a *Authority) Certificate(names ...string) (tls.Certificate, error) {
	is := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			is.IPAddresses = append(is.IPAddresses, ip)
		} else {
			is.DNSNames = append(is.DNSNames, n)
		}
	}
	return a.sign(is, a.cert)
}

// sign makes a certificate with a key of its own; by itself if by is nil.
func (a *Authority) sign(is, by *x509.Certificate) (c tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	is.NotBefore, is.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	signer := a.key
	if by == nil {
		by, signer = is, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, is, by, &key.PublicKey, signer)
	if err != nil {
		return c, err
	}
	leaf, err := x509.ParseCertificate(raw)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}, err
}

// serverArgs are a server's for TLS, with a certificate for the names.
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

// StartTLS is Start, for a server that speaks TLS as well, on [Server.TLSAddr],
// with a certificate of the authority for the names. It asks clients for one of
// that authority unless an argument "--tls-auth-clients", "no" says otherwise.
func StartTLS(t testing.TB, a *Authority, names []string, args ...string) *Server {
	t.Helper()
	tlsArgs, err := a.serverArgs(names...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(&Server{args: append(tlsArgs, args...), tls: true})
	need(t, err)
	removeWith(t, s)
	return s
}
