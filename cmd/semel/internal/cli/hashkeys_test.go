//go:build unix

package cli

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/store"
)

// No command leaves the tenant or the key in the store. Each process with the secret
// finds the record, and operators name it as clients do.
func TestHashKeys_ProxyAndCommands_OnlyHashesInTheStore(t *testing.T) {
	t.Parallel()
	const tenant, key = "canary-4711@example.org", "canary-4711-key"
	var effects atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("answer " + strconv.FormatInt(effects.Add(1), 10)))
	}))
	defer service.Close()
	path := filepath.Join(t.TempDir(), "semel.db")
	file, secret := hashKeys(t, "a")
	other, _ := hashKeys(t, "b")
	at, named := []string{"--store", "sqlite:" + path}, []string{"--tenant", tenant, "--hash-keys-file", file}
	with := func(parts ...[]string) (all []string) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	if r := command(t, "import", "--from", homeGrown(t, "('"+tenant+"', '"+key+"', 201, 'imported')"), "--query", seenQuery, "--to", "sqlite:"+path, "--hash-keys-file", file); r.code != program.ExitOK {
		t.Fatalf("import: %+v", r)
	}
	run := func(file string, send func(ask func(key string) reply)) {
		p := start(t, with([]string{"--listen", "127.0.0.1:0", "--upstream", service.URL, "--scope", "header:X-Tenant", "--hash-keys-file", file}, at)...)
		send(func(key string) reply {
			r, err := post(t.Context(), wire(t), p.Addr, "/pay", key, "{}", "X-Tenant", tenant)
			if err != nil {
				t.Error(err)
			}
			return r
		})
		p.kill()
		if log := p.Log(); strings.Contains(log, "canary-4711") || !strings.Contains(log, "secret_id=") {
			t.Errorf("the log has the canary, or no secret_id: %s", log)
		}
	}
	var first reply
	run(file, func(ask func(string) reply) {
		if r := ask(key); r.body != "imported" || !r.replayed() {
			t.Errorf("the imported key: %+v", r)
		}
		first = ask(key + "2")
	})
	run(file, func(ask func(string) reply) {
		if r := ask(key + "2"); r.body != first.body || !r.replayed() {
			t.Errorf("another process with the secret: %+v", r)
		}
	})
	run(other, func(ask func(string) reply) {
		if r := ask(key + "2"); r.replayed() || effects.Load() != 2 {
			t.Errorf("another secret: %+v", r)
		}
	})
	if strings.Contains(read(t, path)+read(t, path+"-wal"), "canary-4711") {
		t.Error("the canary is in the files")
	}

	k := store.Key{Operation: "http", Tenant: tenant, Value: key + "2"}.Hashed(secret)
	for name, args := range map[string][]string{
		"as clients send it":             with([]string{key + "2"}, named, at),
		"as it is stored":                with([]string{k.Value, "--tenant", k.Tenant}, at),
		"as it is stored, with the file": with([]string{k.Value, "--tenant", k.Tenant, "--hash-keys-file", file}, at),
		"by the hash in logs":            with([]string{k.Short()}, at),
		"by the hash in logs and tenant": with([]string{k.Short()}, named, at),
		"by the hash in upper case":      with([]string{strings.ToUpper(k.Short())}, named, at),
	} {
		if r := command(t, with([]string{"inspect", "get", "--json"}, args)...); r.code != program.ExitOK || !strings.Contains(r.stdout, k.Value) || strings.Contains(r.stdout, "canary-4711") {
			t.Errorf("inspect get, %s: %+v", name, r)
		}
	}
	if r := command(t, with([]string{"inspect", "get", key + "2", "--tenant", tenant, "--hash-keys-file", other}, at)...); r.code != program.ExitOK || strings.Contains(r.stdout, k.Value) {
		t.Errorf("inspect get with another secret: %+v", r)
	}
	for _, whose := range [][]string{named, {"--tenant", k.Tenant}, {"--tenant", k.Tenant, "--hash-keys-file", file}} {
		if r := command(t, with([]string{"inspect", "list", "--json"}, whose, at)...); r.code != program.ExitOK || strings.Count(r.stdout, "\n") != 2 {
			t.Errorf("inspect list %v: %+v", whose, r)
		}
	}
	erased := with([]string{"erase", "--yes", "--rewrite", "--reason", "ticket 12"}, named, at)
	if r := command(t, erased...); r.code != program.ExitOK || !strings.Contains(r.stdout, "erased 2 records") ||
		!strings.Contains(r.stderr, "have the tenant "+k.Tenant) || strings.Contains(r.stdout+r.stderr, "canary-4711") {
		t.Errorf("erase: %+v", r)
	}
	if strings.Contains(read(t, path)+read(t, path+"-wal"), k.Tenant) {
		t.Error("the hash of the erased tenant is in the files")
	}
}

// Verdicts on a hashed record name it as clients do. The log and the audit trail have the
// hashes.
func TestHashKeys_ResolveReopenAndConsole_FindTheRecord(t *testing.T) {
	t.Parallel()
	file, secret := hashKeys(t, "a")
	url, st := seedWith(t, secret)
	fence := func(key string) string {
		f, err := st.Get(t.Context(), store.Key{Operation: "http", Tenant: "ann", Value: key}.Hashed(secret))
		if err != nil {
			t.Fatal(err)
		}
		return strconv.FormatUint(f.Record.Fence, 10)
	}
	trail := filepath.Join(t.TempDir(), "audit")
	hashed := store.Key{Tenant: "ann"}.Hashed(secret).Tenant
	for _, args := range [][]string{
		{"inspect", "resolve", "parked", "--fence", fence("parked"), "--verdict", "failed", "--reason", "not in the ledger"},
		{"inspect", "reopen", "failed", "--fence", fence("failed"), "--reason", "the bank was down"},
	} {
		r := command(t, append(args, "--tenant", "ann", "--store", url, "--hash-keys-file", file, "--audit", trail)...)
		if r.code != program.ExitOK || !strings.Contains(r.stderr, hashed) || strings.Contains(r.stderr, `"ann"`) {
			t.Errorf("%v: %+v", args, r)
		}
	}
	twice := fmt.Sprintf(`"tenant_sha256":"%x"`, sha256.Sum256([]byte(hashed)))
	if text := read(t, trail); strings.Count(text, twice) != 4 || strings.Contains(text, `"ann"`) {
		t.Errorf("the audit trail is %s", text)
	}
	site := startConsole(t, "--store", url, "--hash-keys-file", file)
	if status, body := visit(t, request(t, "GET", site+"records?tenant=ann&operation=http&key=failed", nil)); status != http.StatusOK || !strings.Contains(body, hashed) {
		t.Errorf("console: status %d\n%s", status, body)
	}

	wrong := write(t, "hash-keys", "c2VjcmV0LW9mLXRoZS1zaG9w\n") // too short
	for _, args := range [][]string{
		{"inspect", "get", "parked"}, {"inspect", "list"}, {"erase", "--tenant", "ann"}, {"console"},
		{"import", "--from", "sqlite:none.db", "--query", "SELECT 1", "--to", url},
		{"proxy", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1", "--scope", "single"},
	} {
		if args[0] != "import" {
			args = append(args, "--store", url)
		}
		r := command(t, append(args, "--hash-keys-file", wrong)...)
		if r.code != program.ExitUsage || !strings.Contains(r.stderr, "--hash-keys-file") || !strings.Contains(r.stderr, "at least 32 are needed") || strings.Contains(r.stderr, "c2Vj") {
			t.Errorf("%v with a short secret: %+v", args, r)
		}
	}
}
