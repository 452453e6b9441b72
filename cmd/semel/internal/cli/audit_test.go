package cli

import (
	"encoding/json"
	"net/http"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/store"
)

// trail reads the lines of an audit trail.
func trail(t *testing.T, path string) (lines []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines = append(lines, l)
	}
	return lines
}

// Each act of an operator has two lines: one before it and one with its result.
func TestAudit_EachAct_HasIntentAndResult(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	path := filepath.Join(t.TempDir(), "trail")
	vars := map[string]string{"SEMEL_AUDIT": path, "SUDO_USER": "eve"}
	acts := []struct {
		act, key, result string
		args             []string
	}{
		{"resolve", "parked", "not done", []string{"inspect", "resolve", "parked", "--tenant", "ann", "--fence", "1", "--verdict", "failed"}},
		{"resolve", "parked", "done", []string{"inspect", "resolve", "parked", "--tenant", "ann", "--fence", fenceOf(t, st, "parked"), "--verdict", "failed"}},
		{"reopen", "failed", "done", []string{"inspect", "reopen", "failed", "--tenant", "ann", "--fence", fenceOf(t, st, "failed")}},
		{"reopen", "done", "not done", []string{"inspect", "reopen", "done", "--tenant", "ann", "--fence", fenceOf(t, st, "done")}},
		{"saga retry", "", "not done", []string{"saga", "retry", "order", "o1", "--tenant", "ann", "--fence", "1"}},
		{"outbox drop", "", "not done", []string{"outbox", "drop", "4711"}},
		{"erase", "", "done", []string{"erase", "--tenant", "ann", "--yes"}},
	}
	for i, a := range acts {
		r := commandIn(t, vars, "", append(a.args, "--store", url, "--reason", "ticket 12")...)
		lines := trail(t, path)
		if len(lines) != 2*i+2 {
			t.Fatalf("%s: %d lines, want %d; %+v", a.act, len(lines), 2*i+2, r)
		}
		intent, result := lines[2*i], lines[2*i+1]
		for n, l := range []map[string]any{intent, result} {
			if l["event"] != []string{"intent", "result"}[n] || l["act"] != a.act || l["via"] != "command" || l["reason"] != "ticket 12" || l["store"] != url || l["time"] == nil ||
				l["id"] != intent["id"] || !strings.Contains(l["operator"].(string), "sudo: eve") {
				t.Errorf("%s: line %v", a.act, l)
			}
			if want := tenantHash; a.act != "outbox drop" && l["tenant_sha256"] != want {
				t.Errorf("%s: the hash of the tenant is %v, want %s", a.act, l["tenant_sha256"], want)
			}
			if want := (store.Key{Operation: "http", Tenant: "ann", Value: a.key}).Short(); a.key != "" && l["key"] != want {
				t.Errorf("%s: the key is %v, want the hash %s", a.act, l["key"], want)
			}
		}
		if l := logged(t, r.stderr, a.act); l["result"] != a.result || l["via"] != "command" || (l["error"] == nil) != (a.result == "done") {
			t.Errorf("%s: the log has %v, want the result %q", a.act, l, a.result)
		}
		if result["result"] != a.result || intent["result"] != nil || (result["error"] == nil) != (a.result == "done") {
			t.Errorf("%s: %v, then %v; want the result %q; %+v", a.act, intent, result, a.result, r)
		}
	}
	if text := strings.ReplaceAll(read(t, path), url, ""); regexp.MustCompile(`\bann\b`).MatchString(text) {
		t.Errorf("the trail has the tenant or the key in the clear:\n%s", text)
	}
	if i, err := os.Stat(path); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the file is %v, %v", i.Mode(), err)
	}
}

// logged is the line of JSON about an act on standard error.
func logged(t *testing.T, stderr, act string) (l map[string]any) {
	t.Helper()
	for line := range strings.Lines(stderr) {
		l = nil
		if json.Unmarshal([]byte(line), &l) == nil && l["msg"] == act {
			return l
		}
	}
	t.Errorf("%s: no line about it in %s", act, stderr)
	return nil
}

// A search for an act finds it, whether it was done by a command or in the console.
func TestAudit_ActOfConsole_HasTheWordsOfTheCommand(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	path := filepath.Join(t.TempDir(), "trail")
	site := startConsole(t, "--store", url, "--write", "--user-header", "X-User", "--audit", path)
	for _, c := range []struct{ key, act, want string }{{"parked", "failed", "resolve"}, {"failed", "reopen", "reopen"}} {
		form := neturl.Values{"operation": {"http"}, "tenant": {"ann"}, "key": {c.key}, "fence": {fenceOf(t, st, c.key)}, "act": {c.act}, "reason": {"ticket 12"}}
		r := request(t, "POST", site+"record?"+form.Encode(), form)
		r.Header.Set("X-User", "eve")
		if status, body := visit(t, r); status != http.StatusOK {
			t.Fatalf("status %d\n%s", status, body)
		}
		lines := trail(t, path)
		last := lines[len(lines)-1]
		if last["act"] != c.want || last["via"] != "console" || last["operator"] != "eve" || last["result"] != "done" {
			t.Errorf("%s: the entry is %v", c.act, last)
		}
		if d, _ := last["detail"].(map[string]any); c.act == "failed" && d["verdict"] != "failed" {
			t.Errorf("the entry has no verdict: %v", last)
		}
	}
}

// tenantHash is the SHA-256 of "ann".
const tenantHash = "49915e0d7d4b402e3017d010bc1c0e83cac6c797d6c16e66340fe3268693a6a1"

// An auditor who knows the tenant, and the key, finds their entries by the commands of the
// page.
func TestAudit_CommandsOfThePage_FindTenantAndKey(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip("sha256sum is missing")
	}
	url, st := seed(t)
	path := filepath.Join(t.TempDir(), "trail")
	for _, args := range [][]string{
		{"inspect", "resolve", "parked", "--tenant", "ann", "--fence", fenceOf(t, st, "parked"), "--verdict", "failed"},
		{"erase", "--tenant", "bob", "--yes"}, {"erase", "--tenant", "ann", "--yes"},
	} {
		if r := command(t, append(args, "--store", url, "--reason", "ticket 12", "--audit", path)...); r.code != program.ExitOK {
			t.Fatalf("%v: %+v", args, r)
		}
	}
	page := read(t, filepath.Join("..", "..", "..", "..", "docs", "data-protection.md"))
	blocks := regexp.MustCompile("(?s)```sh\n([^`]*sha256sum.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Fatalf("the page has %d blocks with sha256sum, want 2", len(blocks))
	}
	shell := func(script string) string {
		script = strings.ReplaceAll(script, "/var/log/semel-audit.jsonl", path)
		out, err := exec.CommandContext(t.Context(), "sh", "-ec", script).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", script, err, out)
		}
		return string(out)
	}
	if found := shell(blocks[0][1]); strings.Count(found, "\n") != 4 || strings.Count(found, `"act":"erase"`) != 2 || strings.Count(found, `"act":"resolve"`) != 2 {
		t.Errorf("the command for the tenant found %s", found)
	}
	if found := shell(strings.ReplaceAll(blocks[1][1], "k1", "parked")); strings.Count(found, "\n") != 2 || strings.Count(found, `"act":"resolve"`) != 2 {
		t.Errorf("the command for the key found %s", found)
	}
}

// If the trail cannot be written, nothing is done.
func TestAudit_NotWritable_NothingIsDone(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	for _, path := range []string{t.TempDir(), "/dev/full"} {
		r := command(t, "inspect", "resolve", "parked", "--tenant", "ann", "--store", url, "--fence", fenceOf(t, st, "parked"), "--verdict", "failed", "--reason", "r", "--audit", path)
		f, err := st.Get(t.Context(), store.Key{Operation: "http", Tenant: "ann", Value: "parked"})
		if r.code == program.ExitOK || err != nil || f.Record.State != store.Unknown || !strings.Contains(r.stderr, `"result":"not done"`) {
			t.Errorf("%s: %+v; the record is %v, %v", path, r, f.Record.State, err)
		}
	}
}

func TestAudit_NoFolder_NamesMkdir(t *testing.T) {
	t.Parallel()
	url, _ := seed(t)
	dir := filepath.Join(t.TempDir(), "not here")
	r := command(t, "erase", "--tenant", "ann", "--yes", "--reason", "r", "--store", url, "--audit", filepath.Join(dir, "trail"))
	if want := "its folder does not exist; make it with: mkdir -p '" + dir + "'"; r.code != program.ExitUsage && r.code != program.ExitFailed || !strings.Contains(r.stderr, want) {
		t.Errorf("%q is not in %+v", want, r)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}
