package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/store"
)

// startConsole runs semel console until the test ends, and returns its address.
func startConsole(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	logs, stderr := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		args = append([]string{"console", "--json", "--listen", "127.0.0.1:0"}, args...)
		ended <- Run(ctx, args, func(string) string { return "" }, nil, io.Discard, stderr)
		_ = stderr.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != program.ExitOK {
			t.Errorf("exit code %d", code)
		}
	})
	lines := bufio.NewScanner(logs)
	for lines.Scan() {
		var line struct{ Msg, Addr string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "console listening" {
			go io.Copy(io.Discard, logs)
			return "http://" + line.Addr + "/"
		}
		t.Log(lines.Text())
	}
	t.Fatal("the console does not listen")
	return ""
}

func visit(t *testing.T, r *http.Request) (status int, body string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(r.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func request(t *testing.T, method, url string, body url.Values) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func TestConsole_NoLogin_ReadOnly(t *testing.T) {
	t.Parallel()
	storeURL, st := seed(t)
	site := startConsole(t, "--store", storeURL)
	if status, body := visit(t, request(t, "GET", site, nil)); status != http.StatusOK || !strings.Contains(body, "parked") || !strings.Contains(body, "Quarantined messages") {
		t.Errorf("status %d\n%s", status, body)
	}
	form := url.Values{"operation": {"http"}, "tenant": {"ann"}, "key": {"parked"}, "fence": {fenceOf(t, st, "parked")}, "act": {"failed"}, "reason": {"r"}}
	if status, _ := visit(t, request(t, "POST", site+"record", form)); status != http.StatusForbidden {
		t.Errorf("a form is answered %d", status)
	}
}

func TestConsole_UserOfFile_Resolves(t *testing.T) {
	t.Parallel()
	storeURL, st := seed(t)
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	site := startConsole(t, "--store", storeURL, "--write", "--users", write(t, "users", "eve:"+string(hash)))
	form := url.Values{"operation": {"http"}, "tenant": {"ann"}, "key": {"parked"}, "fence": {fenceOf(t, st, "parked")}, "act": {"did-not-happen"}, "reason": {"not in the ledger"}}
	r := request(t, "POST", site+"record", form)
	if status, _ := visit(t, r); status != http.StatusUnauthorized {
		t.Errorf("without a password: status %d", status)
	}
	r = request(t, "POST", site+"record?"+form.Encode(), form)
	r.SetBasicAuth("eve", "secret")
	if status, body := visit(t, r); status != http.StatusOK || !strings.Contains(body, "Resolved.") {
		t.Errorf("status %d\n%s", status, body)
	}
	f, err := st.Get(t.Context(), store.Key{Operation: "http", Tenant: "ann", Value: "parked"})
	if err != nil || f.Record.State != store.Released || !strings.Contains(f.Record.Holder, "eve: not in the ledger") {
		t.Errorf("the record is %v, held by %q: %v", f.Record.State, f.Record.Holder, err)
	}
}

func TestConsole_OptionsThatLetAnybodyIn_Refused(t *testing.T) {
	t.Parallel()
	storeURL, _ := seed(t)
	for want, args := range map[string][]string{
		"--write: needs a log-in":                              {"--write"},
		"--listen: \"0.0.0.0:0\": can be reached":              {"--listen", "0.0.0.0:0"},
		"this is no header name":                               {"--user-header", "X User"},
		"a credential is no name":                              {"--user-header", "authorization"},
		"belongs to the connection":                            {"--user-header", "Host"},
		"is for --user-header":                                 {"--host", "console.example.org"},
		"without scheme, port and wildcards":                   {"--user-header", "X-User", "--host", "https://console.example.org"},
		"could set X-User themselves":                          {"--listen", ":0", "--user-header", "X-User"},
		"in plain text":                                        {"--listen", ":0", "--users", write(t, "u", "eve:$2y$05$abcdefghijklmnopqrstuuM1Q8yI3vYB1oRrJMKeWmDPTKnYVDCTy")},
		"--users: ":                                            {"--users", filepath.Join(t.TempDir(), "none")},
		"leave one out":                                        {"--user-header", "X-User", "--users", "f"},
		"give both or none":                                    {"--tls-cert", "c"},
		"--retention: \"0s\"":                                  {"--retention", "0s"},
		"--metrics: \"a:1\": \"a:1\" is no address of metrics": {"--metrics", "a:1"},
		"--metrics: URLs[0] is no address of metrics":          {"--metrics", "ftp://eve:secret@a/metrics"},
	} {
		if r := command(t, append([]string{"console", "--store", storeURL}, args...)...); r.code != program.ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: %+v, want %s", args, r, want)
		}
	}
}
