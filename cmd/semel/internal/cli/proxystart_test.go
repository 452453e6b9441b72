package cli

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// All that is wrong at a start is said at once, with the command that mends it.
func TestProxy_SeveralStartProblems_AllNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := filepath.Join(t.TempDir(), "none")
	r := command(t, "proxy", "--upstream", "http://127.0.0.1:1", "--scope", "single", "--store", "sqlite:"+dir+"/semel.db",
		"--listen", l.Addr().String(), "--admin-listen", "unix:"+dir+"/s",
		"--tls-cert", dir+"/cert.pem", "--tls-key", dir+"/key.pem", "--secret-file", dir+"/secrets")
	if r.code != program.ExitUsage {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{"mkdir -p " + dir, "ss -ltnp", "--admin-listen: listen unix", "--tls-cert: cannot be used", "--secret-file: "} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in\n%s", want, r.stderr)
		}
	}
}

func TestWarn_UnsafeChoices_LoggedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"a token for any service":       {[]string{"--scope", "jwt:sub", "--jwks", "/none", "--jwt-issuer", "i"}, nil, "jwt-audience"},
		"a file for each replica":       {[]string{"--scope", "single"}, map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "second replica"},
		"a tenant that anyone can name": {[]string{"--scope", "header:X-Account", "--listen", "0.0.0.0:0"}, nil, "trusted-gateways"},
	} {
		args := append([]string{"proxy", "--upstream", "http://127.0.0.1:1", "--store", "sqlite:/none/semel.db", "--listen", "127.0.0.1:0"}, c.args...)
		r := commandIn(t, c.env, "", args...) // it ends, because the folder of the store does not exist
		if strings.Count(r.stderr, "level=WARN") == 0 || strings.Count(r.stderr, c.want) != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestDoctor_FilesReadableByOthers_Named(t *testing.T) {
	url, _ := seed(t)
	secret := write(t, "secrets", "a:00112233445566778899aabbccddeeff\n")
	if err := os.Chmod(secret, 0o644); err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(url, "sqlite:")
	if r := command(t, "doctor", "--store", url, "--secret-files", secret); r.code != program.ExitFailed || !strings.Contains(r.stderr, "chmod 600 "+secret) || strings.Contains(r.stderr, "chmod 600 "+path) {
		t.Errorf("%+v", r)
	}
	for _, f := range []string{secret, path} {
		if err := os.Chmod(f, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := command(t, "doctor", "--store", url, "--secret-files", secret); r.code != program.ExitOK {
		t.Errorf("%+v", r)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if r := command(t, "doctor", "--store", url); r.code != program.ExitFailed || !strings.Contains(r.stderr, "chmod 600 "+path) {
		t.Errorf("%+v", r)
	}
}

func TestParse_SecretInQuery_NotShown(t *testing.T) {
	for _, args := range [][]string{
		{"--store", "mysql://h/d?token=canary"}, {"--store", "postgres://h/d?semel-x=1&sslpassword=canary"},
		{"--store", "memory:", "--authorize-url", "ftp://h/?token=canary"}, {"--store", "memory:", "--reconcile-url", "http://h/?token=canary"},
	} {
		r := command(t, append([]string{"proxy", "--upstream", "http://127.0.0.1:1", "--scope", "single"}, args...)...)
		if r.code != program.ExitUsage || strings.Contains(r.stderr, "canary") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

func TestProxy_HeaderAlwaysRefused_IsMistake(t *testing.T) {
	r := command(t, "proxy", "--upstream", "http://127.0.0.1:1", "--store", "sqlite:/none/semel.db", "--scope", "header:X_Forwarded_For")
	if r.code != program.ExitUsage || !strings.Contains(r.stderr, `--scope: "X_forwarded_for": `) || !strings.Contains(r.stderr, `"X-Forwarded-For"`) {
		t.Errorf("%+v", r)
	}
}
