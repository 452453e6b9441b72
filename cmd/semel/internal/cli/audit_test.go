package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
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
			if l["event"] != []string{"intent", "result"}[n] || l["act"] != a.act || l["reason"] != "ticket 12" || l["store"] != url || l["time"] == nil ||
				l["id"] != intent["id"] || !strings.Contains(l["operator"].(string), "sudo: eve") {
				t.Errorf("%s: line %v", a.act, l)
			}
			if want := (store.Key{Operation: "http", Tenant: "ann", Value: a.key}).Short(); a.key != "" && l["key"] != want {
				t.Errorf("%s: the key is %v, want the hash %s", a.act, l["key"], want)
			}
		}
		if result["result"] != a.result || intent["result"] != nil || (result["error"] == nil) != (a.result == "done") {
			t.Errorf("%s: %v, then %v; want the result %q; %+v", a.act, intent, result, a.result, r)
		}
	}
	if i, err := os.Stat(path); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the file is %v, %v", i.Mode(), err)
	}
}

// If the trail cannot be written, nothing is done.
func TestAudit_NotWritable_NothingIsDone(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	for _, path := range []string{t.TempDir(), "/dev/full"} {
		r := command(t, "inspect", "resolve", "parked", "--tenant", "ann", "--store", url, "--fence", fenceOf(t, st, "parked"), "--verdict", "failed", "--reason", "r", "--audit", path)
		f, err := st.Get(t.Context(), store.Key{Operation: "http", Tenant: "ann", Value: "parked"})
		if r.code == program.ExitOK || err != nil || f.Record.State != store.Unknown || !strings.Contains(r.stderr, `"result":"refused"`) {
			t.Errorf("%s: %+v; the record is %v, %v", path, r, f.Record.State, err)
		}
	}
}
