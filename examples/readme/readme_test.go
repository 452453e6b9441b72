// Package readme runs the programs of the README.
package readme

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// port is what the programs of the README listen on.
const port = "8080"

// build builds a program of the README and returns its path. The program uses
// another port if newPort is not empty.
func build(t *testing.T, name, newPort string) string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join(name, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copied, overlay, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, name)
	replaced := strings.ReplaceAll(string(text), ":"+port, ":"+cmp.Or(newPort, port))
	doc, err := json.Marshal(map[string]map[string]string{"Replace": {source: copied}})
	if err := errors.Join(err, os.WriteFile(copied, []byte(replaced), 0o600), os.WriteFile(overlay, doc, 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", program, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", name, err, out)
	}
	return program
}

// run runs a program in an empty folder and returns what it prints.
func run(t *testing.T, name, port string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), build(t, name, port))
	cmd.Dir, cmd.Env = t.TempDir(), append(cmd.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func TestFunction_ThreeCalls_ChargeOnce(t *testing.T) {
	out := run(t, "function", "")
	if strings.Count(out, "charging 4200 cents") != 1 || strings.Count(out, "receipt of order-17 <nil>\n") != 3 {
		t.Errorf("it prints\n%s", out)
	}
}

func TestTransaction_ThreeCalls_GetOneID(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(run(t, "transaction", "")), "\n")
	if len(lines) != 3 || lines[0] != lines[1] || lines[1] != lines[2] || !strings.HasSuffix(lines[0], " <nil>") {
		t.Errorf("it prints %q", lines)
	}
}

func TestPostgres_ThreeCalls_DepositOnce(t *testing.T) {
	url := pgtest.Start(t, pgtest.Fast...).URL()
	if out := run(t, "postgres", "", "DATABASE_URL="+url); out != strings.Repeat("4200 <nil>\n", 3) {
		t.Errorf("it prints\n%s", out)
	}
}

func TestServer_RetryOfTheClient_GetsTheFirstAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, free, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	cmd := exec.CommandContext(t.Context(), build(t, "server", free))
	var printed bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &printed, &printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	defer stop()
	post := func() (string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+free+"/payments", strings.NewReader(`{"cents": 4200}`))
		if err != nil {
			return "", err
		}
		r.SetBasicAuth("ann", "secret")
		r.Header.Set("Idempotency-Key", "order-17")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return fmt.Sprint(res.StatusCode, " ", string(body), res.Header.Get("Idempotent-Replayed")), err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, err := post()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for err != nil && ctx.Err() == nil { // until the server listens
		<-tick.C
		first, err = post()
	}
	second, err2 := post()
	if first != "201 payment 4711\n" || second != "201 payment 4711\ntrue" || err != nil || err2 != nil {
		t.Errorf("the answers are %q, %v and %q, %v", first, err, second, err2)
	}
	if out := run(t, "client", free); out != "201 Created replayed: false\n" {
		t.Errorf("the client prints %q", out)
	}
	stop()
	if n := len(regexp.MustCompile("charging ann").FindAllString(printed.String(), -1)); n != 2 {
		t.Errorf("%d charges for two payments:\n%s", n, printed.String())
	}
}
