// Package tlsfile makes TLS configurations from files, and reads a file again when it
// has changed, so that a new certificate needs no restart.
package tlsfile

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// Files are the paths of PEM files. Empty: none.
type Files struct {
	Cert, Key string // this side's certificate chain and its private key
	CA        string // the authorities that verify the other side
}

// Parts returns the parts that are given, as options for files end: ca, cert and key.
func (f Files) Parts() (parts []string) {
	for _, part := range []struct{ name, path string }{{PartCA, f.CA}, {PartCert, f.Cert}, {PartKey, f.Key}} {
		if part.path != "" {
			parts = append(parts, part.name)
		}
	}
	return parts
}

// Error is about one of Files. Its text has the path.
type Error struct {
	Part string // cert, key or ca, as options for files end
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// PartOf is the Part of an error of New.
func PartOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Part
	}
	return PartCert
}

// The parts of Files.
const (
	PartCert = "cert"
	PartKey  = "key"
	PartCA   = "ca"
)

// Source reads Files. Safe for concurrent use. Make it with New.
type Source struct {
	files Files
	warn  func(error) // a file that has changed cannot be used; the last content stays in use
	used  func()      // files that have changed are in use

	mu      sync.Mutex
	checked time.Time
	stamps  stamps
	failed  string // the error of the last read; empty: none
	current content
}

// content is what the files hold.
type content struct {
	cert *tls.Certificate
	cas  *x509.CertPool
}

// stamps tell one content of the files from another. A file that cannot be seen has none.
type stamps [3]os.FileInfo

// equal compares the files, too, because a link that is swapped can lead to a file of the
// same time and size.
func (s stamps) equal(o stamps) bool {
	for i, a := range s {
		b := o[i]
		if a == nil || b == nil {
			if a != b {
				return false
			}
		} else if !os.SameFile(a, b) || !a.ModTime().Equal(b.ModTime()) || a.Size() != b.Size() {
			return false
		}
	}
	return true
}

// checkEvery is the least time between two looks at the files.
const checkEvery = time.Second

// New reads the files. It calls warn when a file that has changed cannot be used, once until
// the error is another one, and used when files that have changed are in use.
func New(f Files, warn func(error), used func()) (*Source, error) {
	s := &Source{files: f, warn: warn, used: used, checked: time.Now()}
	s.stamps = s.look()
	var err error
	s.current, err = s.read()
	return s, err
}

// look returns the stamps of the files.
func (s *Source) look() (now stamps) {
	for i, path := range []string{s.files.Cert, s.files.Key, s.files.CA} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(path); err == nil {
			now[i] = info
		}
	}
	return now
}

func (s *Source) read() (c content, err error) {
	if s.files.Cert != "" {
		if c.cert, err = readPair(s.files.Cert, s.files.Key); err != nil {
			return c, err
		}
	}
	if s.files.CA != "" {
		doc, err := os.ReadFile(s.files.CA)
		if err != nil {
			return c, &Error{PartCA, err}
		}
		if c.cas = x509.NewCertPool(); !c.cas.AppendCertsFromPEM(doc) {
			return c, &Error{PartCA, notPEM(s.files.CA, "certificate")}
		}
	}
	return c, nil
}

// readPair reads a certificate chain and its private key.
func readPair(certPath, keyPath string) (*tls.Certificate, error) {
	cert, err := os.ReadFile(certPath)
	if err != nil {
		return nil, &Error{PartCert, err}
	}
	if !hasBlock(cert, func(kind string) bool { return kind == "CERTIFICATE" }) {
		return nil, &Error{PartCert, notPEM(certPath, "certificate")}
	}
	key, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, &Error{PartKey, err}
	}
	if !hasBlock(key, func(kind string) bool { return kind == "PRIVATE KEY" || strings.HasSuffix(kind, " PRIVATE KEY") }) {
		return nil, &Error{PartKey, notPEM(keyPath, "private key")}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, &Error{PartCert, fmt.Errorf("%s, %s: %w", certPath, keyPath, err)}
	}
	return &pair, nil
}

// hasBlock reports whether a file in PEM form has a block of such a kind.
func hasBlock(doc []byte, is func(kind string) bool) bool {
	for {
		block, rest := pem.Decode(doc)
		if block == nil {
			return false
		}
		if is(block.Type) {
			return true
		}
		doc = rest
	}
}

// notPEM is the error about a file that lacks its block: a certificate or a private key, as
// what says.
func notPEM(path, what string) error {
	look := "openssl x509 -noout -subject -in " + path
	if what != "certificate" {
		look = "openssl pkey -noout -text_pub -in " + path
	}
	return fmt.Errorf("%s: has no %s in PEM form, which begins with a line such as -----BEGIN %s-----; look at it with: %s", path, what, strings.ToUpper(what), look)
}

// get returns the content of the files, at most checkEvery old.
func (s *Source) get() content {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.checked) < checkEvery {
		return s.current
	}
	s.checked = time.Now()
	now := s.look()
	if s.failed == "" && now.equal(s.stamps) {
		return s.current
	}
	c, err := s.read()
	if err != nil { // a certificate and its key are replaced one after the other
		if err.Error() != s.failed {
			s.warn(err)
		}
		s.failed = err.Error()
		return s.current
	}
	s.stamps, s.failed, s.current = now, "", c
	s.used()
	return s.current
}

// Server returns the configuration of a listener. With a CA, clients must show a
// certificate.
func (s *Source) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c := s.get()
			if c.cert == nil {
				return nil, errors.New("there is no certificate")
			}
			own := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{*c.cert}}
			if c.cas != nil {
				own.ClientCAs, own.ClientAuth = c.cas, tls.RequireAndVerifyClientCert
			}
			return own, nil
		},
	}
}

// Dial is a DialTLSContext of http.Transport. It speaks TLS for the host of the
// address on a connection that dial makes.
func (s *Source) Dial(dial func(ctx context.Context, network, addr string) (net.Conn, error), limit time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		raw, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := s.get()
		cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, RootCAs: c.cas, NextProtos: []string{"http/1.1"}}
		if c.cert != nil {
			cfg.Certificates = []tls.Certificate{*c.cert}
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		conn := tls.Client(raw, cfg)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, err
		}
		return conn, nil
	}
}
