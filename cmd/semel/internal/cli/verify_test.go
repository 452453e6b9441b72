package cli

import (
	"database/sql"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/verify"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// database is a store that is there, with a record of somebody in it.
func database(t *testing.T) (url string) {
	t.Helper()
	url = "sqlite:" + filepath.Join(t.TempDir(), "a.db")
	if r := command(t, "migrate", "--store", url); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	return url
}

// records counts the records that semel inspect list shows.
func records(t *testing.T, url string) int {
	t.Helper()
	r := command(t, "inspect", "list", "--json", "--limit", "100000", "--store", url)
	if r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	return strings.Count(r.stdout, "\n")
}

func TestVerify_SQLite_PassesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	url := database(t)
	r := command(t, "verify", "--store", url, "--keys", "10", "--parallel", "4", "--processes", "0", "--body", "64KiB", "--json")
	var got verify.Report
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != program.ExitOK || r.stderr != "" {
		t.Fatalf("%v: %+v", err, r)
	}
	if !got.OK || got.Store != url || got.Connections != connections || got.Trials < 300 || got.Failures != 0 || got.Latency == nil || len(got.Checks) != len(verify.Names())+1 {
		t.Errorf("%+v", got)
	}
	for _, c := range got.Checks {
		if c.Verdict != verify.OK && (c.Name != "process-race" || c.Verdict != verify.Skipped || !strings.Contains(c.Info[0], "no process was asked for")) {
			t.Errorf("%+v", c)
		}
	}
	if n := records(t, url); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

func TestVerify_Memory_PassesWithWarning(t *testing.T) {
	t.Parallel()
	r := command(t, "verify", "--store", "memory:", "--keys", "10", "--only", "settings,claim-race,process-race")
	for _, want := range []string{"memory:, 1 connection", "ok         claim-race", "skipped    process-race", "warning: the records are in memory", "0 broke a promise, 1 warning"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	if r.code != program.ExitOK || r.stderr != "" {
		t.Errorf("%+v", r)
	}
}

// spoilt changes a database without the store.
func spoilt(t *testing.T, url, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(url, "sqlite:")) // the store's driver
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// A trigger stands for a store that is broken: it takes the fence back.
func TestVerify_BrokenStore_ExitCode1(t *testing.T) {
	t.Parallel()
	url := database(t)
	spoilt(t, url, `CREATE TRIGGER spoil AFTER UPDATE ON semel_record WHEN new.fence > old.fence BEGIN UPDATE semel_record SET fence = old.fence WHERE n = new.n; END`)
	r := command(t, "verify", "--store", url, "--keys", "5", "--processes", "0", "--only", "swap-race")
	if r.code != program.ExitFailed || !strings.Contains(r.stdout, "BROKEN     swap-race") || !strings.Contains(r.stderr, "semel verify: the store broke a promise: swap-race (") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}

func TestVerify_List_NamesChecks(t *testing.T) {
	t.Parallel()
	r := command(t, "verify", "--list", "--store", "nowhere")
	for _, name := range verify.Names() {
		if !strings.Contains("\n"+r.stdout, "\n"+name+"  ") {
			t.Errorf("no %s in\n%s", name, r.stdout)
		}
	}
	var all []struct{ Name, Claim string }
	if r := command(t, "verify", "--list", "--json"); json.Unmarshal([]byte(r.stdout), &all) != nil || len(all) != len(verify.Names()) || all[0].Claim == "" {
		t.Errorf("%+v", r)
	}
}

func TestVerify_InvalidFlag_OneLineExitCode2(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`semel verify: --keys: "0": must be from 1 to 100000`:                   {"--keys", "0"},
		`semel verify: --parallel: "1": must be from 2 to 256`:                  {"--parallel", "1"},
		`semel verify: --processes: "99": must be from 0 to 16`:                 {"--processes", "99"},
		`semel verify: --body: "67108865": must be from 1 to 67108864`:          {"--body", "67108865"},
		`semel verify: --limit: "1ms": must be from 1s to 24h0m0s`:              {"--limit", "1ms"},
		`semel verify: --only: "races": choose among settings, clock`:           {"--only", "races"},
		`semel verify: --store: "mysql://x": choose sqlite:PATH`:                {"--store", "mysql://x"},
		`semel: --body: "lots" is not a size`:                                   {"--body", "lots"},
		`semel: --keys: expected a valid 64 bit int but got "many"; see semel `: {"--keys", "many"},
	} {
		r := command(t, append([]string{"verify", "--store", "memory:"}, args...)...)
		if r.code != program.ExitUsage || !strings.HasPrefix(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
			t.Errorf("%q: exit code %d\n got %s\nwant %s", args, r.code, r.stderr, want)
		}
	}
}

func TestVerify_MissingStore_ExitCode1CreatesNone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.db")
	r := command(t, "verify", "--store", "sqlite:"+path)
	if names, _ := filepath.Glob(path + "*"); r.code != program.ExitFailed || !strings.Contains(r.stderr, "there is no such file") || len(names) > 0 {
		t.Errorf("%+v, files %q", r, names)
	}
}

// The error for a missing store or schema names the command that creates it.
func TestCommands_NoSchema_ErrorNamesMigrate(t *testing.T) {
	t.Parallel()
	absent, empty := "sqlite:"+filepath.Join(t.TempDir(), "none.db"), "sqlite:"+write(t, "empty.db", "")
	for _, url := range []string{absent, empty} {
		for _, verb := range []string{"verify", "doctor", "sweep --once", "inspect list"} {
			r := command(t, append(strings.Fields(verb), "--store", url)...)
			if r.code != program.ExitFailed || !strings.Contains(r.stderr, "semel migrate --store "+url) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("%s: %+v", verb, r)
			}
		}
		if r := command(t, "migrate", "--store", url); r.code != program.ExitOK {
			t.Errorf("migrate: %+v", r)
		}
		if r := command(t, "inspect", "list", "--store", url); r.code != program.ExitOK {
			t.Errorf("migrated: %+v", r)
		}
	}
}

func TestVerify_Help_HasExample(t *testing.T) {
	t.Parallel()
	r := command(t, "verify", "--help")
	if r.code != program.ExitOK || !strings.Contains(r.stdout, "Examples") || !strings.Contains(r.stdout, "semel verify --store") || !strings.Contains(r.stdout, "--only") {
		t.Errorf("%+v", r)
	}
	if r := command(t, "--help"); !strings.Contains(r.stdout, "verify [flags]") || strings.Contains(r.stdout, "verify-worker") {
		t.Errorf("%s", r.stdout)
	}
}

// Records of others stay as they are.
func TestVerify_OtherRecords_Unchanged(t *testing.T) {
	t.Parallel()
	url := database(t)
	st, err := sqlitestore.Open(t.Context(), strings.TrimPrefix(url, "sqlite:"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	k := store.Key{Operation: "http", Tenant: "ann", Value: "k"}
	was, err := st.Claim(t.Context(), store.Proposal{Key: k, State: store.Processing, Owner: store.Owner{1}}) // it has lapsed
	if err != nil {
		t.Fatal(err)
	}
	if r := command(t, "verify", "--store", url, "--keys", "5", "--processes", "0", "--only", "doubt,expiry"); r.code != program.ExitOK {
		t.Errorf("%+v", r)
	}
	if now, err := st.Get(t.Context(), k); err != nil || now.Record.Seen() != was.Record.Seen() || records(t, url) != 1 {
		t.Errorf("%+v, %v; it was %+v", now, err, was)
	}
}
