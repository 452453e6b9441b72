package release

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

type descriptor struct {
	Digest   string
	Platform struct{ Architecture string }
}

type manifest struct {
	Manifests, Layers []descriptor
	Config            descriptor
}

// container unpacks the image of this machine's architecture, and runs it in a
// chroot as the image's user, with a read-only root. No container engine is
// needed.
func container(t *testing.T, dir string) {
	if os.Getuid() != 0 {
		skip(t, "the container needs root for chroot and mount")
	}
	blob := func(d descriptor) string {
		return filepath.Join(dir, "image", "blobs", strings.ReplaceAll(d.Digest, ":", "/"))
	}
	decode := func(name string, value any) {
		t.Helper()
		if err := json.Unmarshal([]byte(read(t, name)), value); err != nil {
			t.Fatal(err)
		}
	}
	var top, platforms, image manifest
	decode(filepath.Join(dir, "image", "index.json"), &top)
	decode(blob(top.Manifests[0]), &platforms)
	for _, d := range platforms.Manifests {
		if d.Platform.Architecture == runtime.GOARCH {
			decode(blob(d), &image)
		}
	}
	if len(image.Layers) == 0 {
		t.Fatalf("the image has no layers for %s", runtime.GOARCH)
	}
	var config struct {
		Config struct {
			User, WorkingDir string
			Entrypoint, Env  []string
		}
	}
	decode(blob(image.Config), &config)
	c := config.Config
	if c.User != "65532:65532" || c.WorkingDir != "/data" || len(c.Entrypoint) != 1 {
		t.Fatalf("the image runs %q as %q in %q", c.Entrypoint, c.User, c.WorkingDir)
	}
	root := t.TempDir()
	for _, layer := range image.Layers {
		command(t, root, nil, "tar", "-xzpf", blob(layer), "--numeric-owner")
	}
	if !x509.NewCertPool().AppendCertsFromPEM([]byte(read(t, filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")))) {
		t.Error("the image has no CA certificates")
	}

	// Only /data and /tmp are writable, as with --read-only and the image's volumes.
	const enter = `set -e; mount --bind "$1" "$1"; mount --bind "$1/data" "$1/data"; mount --bind "$1/tmp" "$1/tmp"
mount -o remount,bind,ro "$1"; root=$1; user=$2; path=$3; shift 3; enter=$(command -v chroot); PATH=$path exec "$enter" --userspec="$user" "$root" "$@"`
	start := func(args ...string) *exec.Cmd {
		args = append([]string{"-m", "--wd=/", "sh", "-c", enter, "sh", root, c.User, strings.TrimPrefix(c.Env[1], "PATH="), c.Entrypoint[0]}, args...)
		cmd := exec.CommandContext(t.Context(), "unshare", args...)
		cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, c.Env[:1]...)
		return cmd
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", "-m", "true").CombinedOutput(); err != nil {
		skip(t, "this machine allows no mount namespace: %v %s", err, out)
	}
	out, err := start("version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "semel "+version+",") {
		t.Fatalf("semel version: %v\n%s", err, out)
	}
	t.Run("Proxy_ForwardsOnce", func(t *testing.T) { proxy(t, start, root) })
	t.Run("Deliver_SendsOnce", func(t *testing.T) { deliver(t, start, root) })
}

// proxy sends one request twice through the container's proxy. The body is so
// large that the proxy puts it into a temporary file.
func proxy(t *testing.T, start func(...string) *exec.Cmd, root string) {
	var calls atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if n == 200<<10 {
			calls.Add(1)
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer upstream.Close()
	cmd := start("proxy", "--upstream", upstream.URL, "--scope", "single", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--store", "sqlite:/data/semel.db")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	address := regexp.MustCompile(`addr"?[=:]"?(127\.0\.0\.1:\d+)`)
	var admin, clients string
	for lines := bufio.NewScanner(log); clients == "" && lines.Scan(); {
		t.Log(lines.Text())
		if m := address.FindStringSubmatch(lines.Text()); m != nil && strings.Contains(lines.Text(), "admin listening") {
			admin = m[1]
		} else if m != nil && strings.Contains(lines.Text(), "listening") {
			clients = m[1]
		}
	}
	if admin == "" || clients == "" {
		t.Fatalf("the proxy does not listen: %q, %q", admin, clients)
	}
	go io.Copy(io.Discard, log)
	if status, _ := send(t, "GET", "http://"+admin+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz answers %d", status)
	}
	for i, want := range []string{"", "true"} {
		status, replayed := send(t, "POST", "http://"+clients+"/payments")
		if status != http.StatusCreated || replayed != want {
			t.Errorf("request %d: status %d, Idempotent-Replayed %q, want 201 and %q", i, status, replayed, want)
		}
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("the service got the request %d times, want once", n)
	}
	if _, err := os.Stat(filepath.Join(root, "data", "semel.db")); err != nil {
		t.Errorf("the records are not in /data: %v", err)
	}
}

func send(t *testing.T, method, url string) (status int, replayed string) {
	t.Helper()
	var body io.Reader
	if method == "POST" {
		body = bytes.NewReader(make([]byte, 200<<10))
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", `"release-test"`)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Idempotent-Replayed")
}
