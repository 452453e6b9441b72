package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// left counts the records of a store.
func left(t *testing.T, st store.Lister) (n int) {
	t.Helper()
	for _, err := range st.List(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestErase_WithoutYes_OnlyCounts(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	r := command(t, "erase", "--store", url, "--tenant", "ann")
	if r.code != program.ExitOK || !strings.Contains(r.stdout, "with --yes it would erase 4 records; left: 0 running, 1 in doubt") || left(t, st) != 5 {
		t.Errorf("%+v; %d records", r, left(t, st))
	}
	if r := command(t, "erase", "--store", url, "--tenant", "nobody"); r.code != program.ExitOK || !strings.Contains(r.stdout, "would erase 0 records") || strings.Contains(r.stdout, "--rewrite") ||
		!strings.Contains(r.stderr, "--hash-keys-file") {
		t.Errorf("a tenant without records: %+v", r)
	}
}

func TestErase_Tenant_LeavesDoubtAndExitsWith1UntilItIsResolved(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	parked := store.Key{Operation: "http", Tenant: "ann", Value: "parked"}
	args := []string{"erase", "--store", url, "--tenant", "ann", "--yes", "--reason", "ticket 12", "--json"}
	r := command(t, args...)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	var l leftRecord
	var counts erasedCounts
	if r.code != program.ExitFailed || len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &l) != nil || json.Unmarshal([]byte(lines[1]), &counts) != nil {
		t.Fatalf("%+v", r)
	}
	if l.Key != parked.Short() || l.State != "unknown" || !strings.Contains(l.Next, "semel inspect resolve") || strings.Contains(r.stdout+r.stderr, `"parked"`) {
		t.Errorf("left: %+v of %+v", l, r)
	}
	if counts.Erased != 4 || counts.InDoubt != 1 || counts.Counted || len(counts.Remains) == 0 || left(t, st) != 1 {
		t.Errorf("counts %+v; %d records", counts, left(t, st))
	}
	for _, want := range []string{`"operator":`, `"reason":"ticket 12"`, `"erased":4`, "1 record left"} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("standard error has no %s: %s", want, r.stderr)
		}
	}
	resolve := command(t, "inspect", "resolve", parked.Short(), "--tenant", "ann", "--store", url, "--fence", fenceOf(t, st, "parked"), "--verdict", "failed", "--reason", "not in the ledger")
	if again := command(t, args...); resolve.code != program.ExitOK || again.code != program.ExitOK || left(t, st) != 0 {
		t.Errorf("%+v, then %+v; %d records", resolve, again, left(t, st))
	}
}

func TestErase_AnswersOnlyAndRewrite_NoByteOfAnswerLeft(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	path := strings.TrimPrefix(url, "sqlite:")
	if files := read(t, path) + read(t, path+"-wal"); !strings.Contains(files, "canary-body") {
		t.Fatal("the answer is not in the files, so the test would find nothing")
	}
	r := command(t, "erase", "--store", url, "--tenant", "ann", "--operation", "http", "--key", "done", "--answers-only", "--rewrite", "--yes", "--reason", "ticket 12")
	if r.code != program.ExitOK || !strings.Contains(r.stdout, "erased 1 record") || left(t, st) != 5 {
		t.Errorf("%+v; %d records", r, left(t, st))
	}
	if files := read(t, path) + read(t, path+"-wal"); strings.Contains(files, "canary-body") {
		t.Error("the answer is still in the files")
	}
	f, err := st.Get(t.Context(), store.Key{Operation: "http", Tenant: "ann", Value: "done"})
	if err != nil || f.Record.State != store.Completed || f.Record.Outcome.Code != 201 || !f.Record.Outcome.Gone {
		t.Errorf("the record is %+v, %v", f.Record, err)
	}
}

func TestErase_WrongFlags_ExitWith2(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no tenant":                  {[]string{"--yes", "--reason", "r"}, "--tenant"},
		"a key without operation":    {[]string{"--tenant", "ann", "--key", "done", "--yes", "--reason", "r"}, "--operation"},
		"no reason":                  {[]string{"--tenant", "ann", "--yes"}, "--reason"},
		"a time-out of nothing":      {[]string{"--tenant", "ann", "--store-timeout", "1ms"}, "--store-timeout"},
		"an audit trail in no place": {[]string{"--tenant", "ann", "--yes", "--reason", "r", "--audit", filepath.Join(t.TempDir(), "none", "trail")}, "--audit"},
		"the same without --yes":     {[]string{"--tenant", "ann", "--audit", filepath.Join(t.TempDir(), "none", "trail")}, "its folder does not exist; make it with: mkdir -p "},
		"a folder as audit trail":    {[]string{"--tenant", "ann", "--audit", t.TempDir()}, "is a directory"},
	} {
		r := command(t, append([]string{"erase", "--store", url}, c.args...)...)
		if r.code != program.ExitUsage || !strings.Contains(r.stderr, c.want) || left(t, st) != 5 {
			t.Errorf("%s: %+v; %d records", name, r, left(t, st))
		}
	}
	if r := command(t, "erase", "--store", "redis://127.0.0.1:1/0", "--tenant", "ann", "--rewrite"); r.code != program.ExitUsage || !strings.Contains(r.stderr, "--rewrite") {
		t.Errorf("--rewrite of Redis: %+v", r)
	}
}

// On PostgreSQL the command rewrites the tables, and says where bytes can still be.
func TestErase_PostgreSQL_RewritesTables(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	dueAndStuck(t, server.URL())
	r := command(t, "erase", "--store", server.URL(), "--tenant", "ann", "--operation", "order", "--yes", "--rewrite", "--reason", "ticket 12")
	if r.code != program.ExitFailed || !strings.Contains(r.stdout, "erased 0 records; left: 0 running, 2 in doubt, 3 unfinished, 0 failed") ||
		strings.Count(r.stdout, "left: ") != 6 || !strings.Contains(r.stdout, "semel saga") || !strings.Contains(r.stdout, "write-ahead log") {
		t.Errorf("sagas that have not ended: %+v", r)
	}
}
