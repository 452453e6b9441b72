package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
)

// filled makes a SQLite store with a record in each of some states.
func filled(t *testing.T, states ...store.State) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "old.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for i, s := range states {
		p := store.Proposal{Key: store.Key{Operation: "http", Tenant: "ann", Value: s.String()}, State: store.Processing, Owner: store.Owner{byte(i), 1}, Attempt: 1, Lease: time.Hour}
		f, err := st.Claim(t.Context(), p)
		if err == nil && s != store.Processing {
			err = st.Settle(t.Context(), f.Record.Lease(), store.Settlement{State: s, Attempt: 1, Keep: time.Hour, Outcome: store.Outcome{Code: 201, Body: []byte("answer")}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return "sqlite:" + path
}

func TestCopy_StoreToStore_CopiesAndCompares(t *testing.T) {
	t.Parallel()
	from, to := filled(t, store.Completed, store.Unknown, store.Released), "sqlite:"+filepath.Join(t.TempDir(), "new.db")
	r := command(t, "copy", "--from", from, "--to", to, "--verify")
	if r.code != 0 || !strings.Contains(r.stdout, "read 3: copied 3, already there 0") || !strings.Contains(r.stdout, "compared 3: same 3") {
		t.Errorf("%+v", r)
	}
	r = command(t, "copy", "--from", from, "--to", to, "--json")
	var got copied
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != 0 || got.Copy.There != 3 || got.Copy.Copied != 0 || got.Verify != nil {
		t.Errorf("again: %+v, %v", r, err)
	}
	if r := command(t, "inspect", "get", "completed", "--tenant", "ann", "--store", to, "--show-body"); r.code != 0 || !strings.Contains(r.stdout, "answer") {
		t.Errorf("%+v", r)
	}
	if r := command(t, "copy", "--from", from, "--to", to, "--verify", "--dry-run"); r.code != 0 || strings.Contains(r.stdout, "copied") {
		t.Errorf("compare only: %+v", r)
	}
}

func TestCopy_RecordInFlight_NamedAndExitCode1(t *testing.T) {
	t.Parallel()
	from, to := filled(t, store.Completed, store.Processing), "sqlite:"+filepath.Join(t.TempDir(), "new.db")
	r := command(t, "copy", "--from", from, "--to", to)
	if r.code != 1 || !strings.Contains(r.stdout, "copied 1") || !strings.Contains(r.stderr, "operation http, tenant ann, key processing") || !strings.Contains(r.stderr, "1 in flight") {
		t.Errorf("%+v", r)
	}
}

func TestCopy_WrongOptions_ExitCode2(t *testing.T) {
	t.Parallel()
	from := filled(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(strings.TrimPrefix(from, "sqlite:"), link); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"is the store of --from":       {"--from", from, "--to", from},
		link + `": is the store of`:    {"--from", from, "--to", "sqlite:" + link},
		"--from: \"x\": choose sqlite": {"--from", "x", "--to", from},
		"--workers":                    {"--from", from, "--to", "memory:", "--workers", "0"},
		"missing flags":                {"--from", from},
	} {
		if r := command(t, append([]string{"copy"}, args...)...); r.code != 2 || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: %+v, want %q", args, r, want)
		}
	}
}

// A source that a command made would be empty, and a copy of nothing succeeds.
func TestCopy_NoSource_IsNotToBeMade(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "no.db"), filepath.Join(t.TempDir(), "no", "no.db"), empty} {
		r := command(t, "copy", "--from", "sqlite:"+path, "--to", "memory:")
		if r.code != 1 || !strings.Contains(r.stderr, "give the store that the processes have used until now") || strings.Contains(r.stderr, "semel migrate") || strings.Contains(r.stderr, "mkdir") {
			t.Errorf("%s: %+v", path, r)
		}
	}
}
