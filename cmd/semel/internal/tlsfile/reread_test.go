package tlsfile_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
)

// issue writes a certificate and its key to a new directory. All have one time and size.
func issue(t *testing.T, dir string, serial int64) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Unix(4e9, 0)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err := errors.Join(err, os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: cert}, "key": {Type: "PRIVATE KEY", Bytes: key}} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, pem.EncodeToMemory(block), 0o600), os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0))); err != nil {
			t.Fatal(err)
		}
	}
}

// A directory of files is replaced by swapping a link, as an orchestrator does. While it is
// away, the last certificate stays in use, and one warning says so.
func TestServer_LinkSwapped_FilesOfSameTimeAreUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		issue(t, filepath.Join(dir, "v1"), 1)
		issue(t, filepath.Join(dir, "v2"), 2)
		link := filepath.Join(dir, "now")
		swap := func(to string) {
			t.Helper()
			_ = os.Remove(link) // the first time there is none
			if err := os.Symlink(to, link); err != nil {
				t.Fatal(err)
			}
		}
		swap("v1")
		warned, used := 0, 0
		s, err := tlsfile.New(tlsfile.Files{Cert: filepath.Join(link, "cert"), Key: filepath.Join(link, "key")}, func(error) { warned++ }, func() { used++ })
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			link                 string
			serial, warned, used int
		}{{"v1", 1, 0, 0}, {"v2", 2, 0, 1}, {"none", 2, 1, 1}, {"v2", 2, 1, 2}, {"v1", 1, 1, 3}} {
			swap(c.link)
			for range 3 {
				time.Sleep(time.Second)
				cfg, err := s.Server().GetConfigForClient(nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := cfg.Certificates[0].Leaf.SerialNumber.Int64(); got != int64(c.serial) || warned != c.warned || used != c.used {
					t.Errorf("%+v: certificate %d, warned %d times, used %d times", c, got, warned, used)
				}
			}
		}
	})
}
