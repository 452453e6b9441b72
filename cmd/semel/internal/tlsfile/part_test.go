package tlsfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/tlsfile"
)

// An error says which file is bad, in which form it must be, and how to look at it.
func TestNew_BadFile_NamesPartFormAndCommand(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	plain := file("plain", "no PEM")
	cert := file("cert", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	key := file("key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
	none := filepath.Join(dir, "none")
	for name, c := range map[string]struct {
		files tlsfile.Files
		part  string
		want  string
	}{
		"no CA":                     {tlsfile.Files{CA: none}, tlsfile.PartCA, none},
		"a CA without PEM":          {tlsfile.Files{CA: plain}, tlsfile.PartCA, plain + ": has no certificate in PEM form, which begins with a line such as -----BEGIN CERTIFICATE-----; look at it with: openssl x509"},
		"no certificate":            {tlsfile.Files{Cert: none, Key: key}, tlsfile.PartCert, none},
		"a certificate without PEM": {tlsfile.Files{Cert: plain, Key: key}, tlsfile.PartCert, plain + ": has no certificate in PEM form"},
		"no key":                    {tlsfile.Files{Cert: cert, Key: none}, tlsfile.PartKey, none},
		"a key without PEM":         {tlsfile.Files{Cert: cert, Key: plain}, tlsfile.PartKey, plain + ": has no private key in PEM form, which begins with a line such as -----BEGIN PRIVATE KEY-----; look at it with: openssl pkey"},
		"both in the wrong place":   {tlsfile.Files{Cert: key, Key: cert}, tlsfile.PartCert, key + ": has no certificate"},
		"a certificate that is bad": {tlsfile.Files{Cert: cert, Key: key}, tlsfile.PartCert, cert + ", " + key + ": "},
	} {
		_, err := tlsfile.New(c.files, nil, nil)
		if err == nil || tlsfile.PartOf(err) != c.part || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: about %s: %v\nwant %s: %s", name, tlsfile.PartOf(err), err, c.part, c.want)
		}
	}
}
