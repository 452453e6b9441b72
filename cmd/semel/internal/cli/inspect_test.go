package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// seed makes a store with a record of each kind, and returns its URL.
func seed(t testing.TB) (url string, st *sqlitestore.Store) { return seedWith(t, nil) }

// seedWith is seed with hashed tenants and keys, unless the secret is nil.
func seedWith(t testing.TB, secret []byte) (url string, st *sqlitestore.Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	g, err := semel.New(st, &semel.Options{OnDoubt: semel.Park, HashKeys: secret})
	if err != nil {
		t.Fatal(err)
	}
	for key, end := range map[string]func() (store.Outcome, error){
		"done": func() (store.Outcome, error) {
			return store.Outcome{Code: 201, Body: []byte("canary-body"), Header: []store.Header{{Name: "Location", Value: "/p/1"}, {Name: "Set-Cookie", Value: "canary-cookie"}}}, nil
		},
		"raw":      func() (store.Outcome, error) { return store.Outcome{Code: 200, Body: []byte{0xff, 0}}, nil },
		"parked":   func() (store.Outcome, error) { return store.Outcome{}, errors.New("lost\x1b[2J") },
		"released": func() (store.Outcome, error) { return store.Outcome{}, semel.NoEffect(errors.New("not sent")) },
		"failed":   func() (store.Outcome, error) { return store.Outcome{}, semel.Final(errors.New("declined")) },
	} {
		_, _ = g.Run(t.Context(), semel.Call{Operation: "http", Tenant: "ann", Key: key, Payload: semel.Digest("semelhttp/1", make([]byte, 32))},
			func(context.Context, *semel.Execution) (store.Outcome, error) { return end() })
	}
	return "sqlite:" + path, st
}

func fenceOf(t testing.TB, st store.Store, key string) string {
	t.Helper()
	f, err := st.Get(t.Context(), store.Key{Operation: "http", Tenant: "ann", Value: key})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(f.Record.Fence)
}

func TestInspectList_Filters(t *testing.T) {
	t.Parallel()
	url, _ := seed(t)
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"all":           {nil, 5},
		"of two states": {[]string{"--state", "unknown,failed"}, 2},
		"of nobody":     {[]string{"--tenant", "bob"}, 0},
		"of a tenant":   {[]string{"--tenant", "ann", "--operation", "http"}, 5},
		"old ones":      {[]string{"--idle", "1h"}, 0},
		"not all":       {[]string{"--limit", "2"}, 2},
	} {
		r := command(t, append([]string{"inspect", "list", "--store", url, "--json"}, c.args...)...)
		if n := strings.Count(r.stdout, "\n"); r.code != program.ExitOK || n != c.want {
			t.Errorf("%s: %d records: %+v", name, n, r)
		}
		if told := strings.Contains(r.stderr, "there are more than 2; raise --limit"); told != (name == "not all") || told && !json.Valid([]byte(r.stderr)) {
			t.Errorf("%s: %s", name, r.stderr)
		}
		for line := range strings.Lines(r.stdout) {
			var v view
			if err := json.Unmarshal([]byte(line), &v); err != nil || v.Fence == 0 || v.Key == "" || v.Created.IsZero() {
				t.Errorf("%s: %s: %v", name, line, err)
			}
		}
	}
	r := command(t, "inspect", "list", "--store", url)
	for _, want := range []string{"STATE", "unknown", "parked", "http", "ann", "lost·[2J", "not sent"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in\n%s", want, r.stdout)
		}
	}
	if strings.Contains(r.stdout, "\x1b") || strings.Contains(r.stdout, "canary") {
		t.Errorf("the table shows too much:\n%q", r.stdout)
	}
}

func TestInspect_WithoutShowBody_HidesBodyAndHeaders(t *testing.T) {
	t.Parallel()
	url, _ := seed(t)
	get := func(key string, more ...string) result {
		return command(t, append([]string{"inspect", "get", key, "--tenant", "ann", "--store", url}, more...)...)
	}
	for _, form := range [][]string{nil, {"--json"}} {
		if r := get("done", form...); r.code != program.ExitOK || strings.Contains(r.stdout, "canary") || strings.Contains(r.stdout, "/p/1") || !strings.Contains(r.stdout, "201") {
			t.Errorf("%q: %+v", form, r)
		}
		r := get("done", append(form, "--show-body")...)
		if r.code != program.ExitOK || !strings.Contains(r.stdout, "canary-body") || !strings.Contains(r.stdout, "/p/1") {
			t.Errorf("%q --show-body: %+v", form, r)
		}
		if strings.Contains(r.stdout, "canary-cookie") {
			t.Errorf("%q: a cookie is shown:\n%s", form, r.stdout)
		}
	}
	if r := get("raw", "--json", "--show-body"); !strings.Contains(r.stdout, `"body_base64":"/wA="`) {
		t.Errorf("%+v", r)
	}
	if r := get("parked"); !strings.Contains(r.stdout, "unknown") || !strings.Contains(r.stdout, `semel inspect resolve parked --operation http --tenant ann --store sqlite:`) || strings.Contains(r.stdout, "\x1b") {
		t.Errorf("%q", r.stdout)
	}
	if r := get("none"); r.code != program.ExitFailed || !strings.Contains(r.stderr, `tenant "ann"`) {
		t.Errorf("%+v", r)
	}
	if r := command(t, "inspect", "get", "done", "--store", url); r.code != program.ExitFailed || !strings.Contains(r.stderr, "give --tenant") {
		t.Errorf("%+v", r)
	}
}

// A tenant is what a header says, and a key what a program makes: any bytes.
func TestInspect_NamesNotUTF8_FoundAndResolved(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	g, err := semel.New(st, &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"Jos\xe9", "Jos\xe8"} {
		_, _ = g.Run(t.Context(), semel.Call{Operation: "http", Tenant: tenant, Key: "k\xff", Payload: semel.NoPayload()},
			func(context.Context, *semel.Execution) (store.Outcome, error) {
				return store.Outcome{}, errors.New("lost")
			})
	}
	get := func() view {
		r := command(t, "inspect", "get", "k\xff", "--tenant", "Jos\xe9", "--store", url, "--json")
		var v view
		if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || r.code != program.ExitOK {
			t.Fatalf("%v: %+v", err, r)
		}
		return v
	}
	v := get()
	if string(v.TenantBase64) != "Jos\xe9" || string(v.KeyBase64) != "k\xff" || v.Operation != "http" {
		t.Errorf("%+v", v)
	}
	if r := command(t, "inspect", "list", "--tenant", "Jos\xe9", "--store", url, "--json"); r.code != program.ExitOK || strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("%+v", r)
	}
	r := command(t, "inspect", "resolve", "k\xff", "--tenant", "Jos\xe9", "--store", url, "--fence", fmt.Sprint(v.Fence), "--reason", "r", "--verdict", "did-not-happen")
	if r.code != program.ExitOK || get().State != store.Released {
		t.Errorf("%+v", r)
	}
	if r := command(t, "inspect", "get", "done", "--tenant", "ann", "--store", url, "--json"); strings.Contains(r.stdout, "base64") {
		t.Errorf("a name that is text, in base64, too: %+v", r)
	}
}

func TestInspectResolve_Parked_Resolved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		stdin string
		state store.State
		want  store.Outcome
	}{
		"happened": {[]string{"--verdict", "happened", "--status", "201", "--header", "location: /p, 9", "--body-file", "-"}, "made by hand", store.Completed,
			store.Outcome{Code: 201, Header: []store.Header{{Name: "Location", Value: "/p, 9"}}, Body: []byte("made by hand")}},
		"did not": {[]string{"--verdict", "did-not-happen"}, "", store.Released, store.Outcome{}},
		"failed":  {[]string{"--verdict", "failed"}, "", store.Failed, store.Outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			url, st := seed(t)
			fence := fenceOf(t, st, "parked")
			args := append([]string{"inspect", "resolve", "parked", "--tenant", "ann", "--store", url, "--fence", fence, "--reason", "ledger 4711", "--json"}, c.args...)
			r := commandIn(t, map[string]string{"SUDO_USER": "eve"}, c.stdin, args...)
			f, err := st.Get(t.Context(), store.Key{Operation: "http", Tenant: "ann", Value: "parked"})
			if r.code != program.ExitOK || err != nil || f.Record.State != c.state {
				t.Fatalf("%+v; the record is %v, %v", r, f.Record.State, err)
			}
			if c.state == store.Completed && !f.Record.Outcome.Equal(c.want) {
				t.Errorf("kept %+v", f.Record.Outcome)
			}
			var line map[string]any
			if err := json.Unmarshal([]byte(r.stderr), &line); err != nil || strings.Count(r.stderr, "\n") != 1 {
				t.Fatalf("not one line of JSON: %q: %v", r.stderr, err)
			}
			if !strings.Contains(line["operator"].(string), "sudo: eve") || line["reason"] != "ledger 4711" || fmt.Sprintf("%.0f", line["fence"]) != fence ||
				line["verdict"] != c.args[1] || line["key"] == "parked" || line["result"] != "done" {
				t.Errorf("logged %v", line)
			}
			if !strings.Contains(f.Record.Holder, "sudo: eve") || !strings.Contains(f.Record.Holder, "ledger 4711") {
				t.Errorf("the record does not say who resolved it and why: %q", f.Record.Holder)
			}
			if callers := string(f.Record.Outcome.Body); strings.Contains(callers, "4711") || strings.Contains(callers, "eve") {
				t.Errorf("callers get %q, with the operator or the reason", callers)
			}
			// The same again is about a state that is over.
			if r := commandIn(t, nil, c.stdin, args...); r.code != program.ExitFailed || !strings.Contains(r.stderr, "nothing was changed") {
				t.Errorf("again: %+v", r)
			}
		})
	}
}

func TestInspectResolve_OldFence_ChangesNothing(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	old := fenceOf(t, st, "parked")
	g, err := semel.New(st, &semel.Options{OnDoubt: semel.Park, Reconcile: func(context.Context, *semel.Execution) (semel.Verdict, error) {
		return semel.Verdict{}, nil // it asks, and changes the fence
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Reconcile(t.Context(), "http", 10); err != nil {
		t.Fatal(err)
	}
	now := fenceOf(t, st, "parked")
	r := command(t, "inspect", "resolve", "parked", "--tenant", "ann", "--store", url, "--fence", old, "--reason", "r", "--verdict", "did-not-happen")
	next := "its fence is now " + now + "; look at it again before you use that: semel inspect get parked --operation http --tenant ann --store " + url + "\n"
	if r.code != program.ExitFailed || !strings.Contains(r.stderr, next) || old == now || !strings.Contains(r.stderr, `"result":"not done"`) {
		t.Errorf("%+v", r)
	}
	if logged, _, _ := strings.Cut(r.stderr, "\n"); strings.Contains(logged, "parked") {
		t.Errorf("the log names the key: %s", logged)
	}
	f, err := st.Get(t.Context(), store.Key{Operation: "http", Tenant: "ann", Value: "parked"})
	if err != nil || f.Record.State != store.Unknown {
		t.Errorf("the record is %v, %v", f.Record.State, err)
	}
}

// A record that is not in doubt is refused with the next step for its state.
func TestInspectResolve_NotParked_NamesNextStep(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	for key, want := range map[string]string{
		"done":     "the record is completed, and only a parked (unknown) one can be resolved; its fence is FENCE; nothing is to be done. To look at it: semel inspect get done --operation http --tenant ann --store URL\n",
		"failed":   "the record is failed, and only a parked (unknown) one can be resolved; its fence is FENCE; to let it run again: semel inspect reopen failed --operation http --tenant ann --store URL --fence FENCE --reason TEXT --retention 7d\n",
		"released": "the record is released, and only a parked (unknown) one can be resolved; its fence is FENCE; look at it: semel inspect get released --operation http --tenant ann --store URL\n",
	} {
		fence := fenceOf(t, st, key)
		want = strings.NewReplacer("FENCE", fence, "URL", url).Replace(want)
		r := command(t, "inspect", "resolve", key, "--tenant", "ann", "--store", url, "--fence", fence, "--reason", "r", "--verdict", "did-not-happen")
		if r.code != program.ExitFailed || !strings.Contains(r.stderr, want) {
			t.Errorf("%+v; want %s", r, want)
		}
	}
}

func TestInspectResolve_IncompleteVerdict_UsageError(t *testing.T) {
	t.Parallel()
	base := []string{"inspect", "resolve", "k", "--fence", "1", "--reason", "r"}
	for want, args := range map[string][]string{
		`--verdict: "happened": needs the answer that duplicates get: --status 200 to 599 for a request over HTTP, --codec and --body-file for a call of semel.Do`: {"--verdict", "happened", "--body-file", "none"},
		`--status: "99": must be from 200 to 599`:                                     {"--verdict", "happened", "--status", "99"},
		`--verdict: "failed": has no answer`:                                          {"--verdict", "failed", "--status", "200"},
		`--header: "Set-Cookie: a=b": write`:                                          {"--verdict", "happened", "--status", "200", "--header", "Set-Cookie: a=b"},
		`--header: "nonsense": write`:                                                 {"--verdict", "happened", "--status", "200", "--header", "nonsense"},
		`--body-file: "none": there is no such file; see what is there with: ls -l .`: {"--verdict", "happened", "--status", "200", "--body-file", "none"},
		`--retention: "0s": must be from 1s to`:                                       {"--verdict", "failed", "--retention", "0s"},
		`--codec: "json": is for a call`:                                              {"--verdict", "happened", "--status", "200", "--codec", "json"},
		`--body-file: is missing; it names the file with the result`:                  {"--verdict", "happened", "--codec", "json"},
		`--reason: must not be empty`:                                                 {"--verdict", "failed", "--reason", " "},
	} {
		if r := command(t, append(base, args...)...); r.code != program.ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: %+v, want %s", args, r, want)
		}
	}
}

func TestSweepDoctorMigrate_OneStore(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	p := store.Proposal{Key: store.Key{Operation: "http", Value: "dead"}, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Millisecond}
	if _, err := st.Claim(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	var d diagnosis
	if r := command(t, "doctor", "--store", url, "--json"); r.code != program.ExitOK || json.Unmarshal([]byte(r.stdout), &d) != nil || !d.OK || len(d.Problems) > 0 {
		t.Errorf("%+v", r)
	}
	if r := command(t, "doctor", "--store", url); r.code != program.ExitOK || r.stdout != url+": ok\n" {
		t.Errorf("%+v", r)
	}
	eventuallyOK(t, func() bool { // until the claim has lapsed
		f, err := st.Get(t.Context(), p.Key)
		return err == nil && f.Record.Lapsed(f.Now)
	})
	var s swept
	if r := command(t, "sweep", "--once", "--store", url, "--json"); r.code != program.ExitOK || json.Unmarshal([]byte(r.stdout), &s) != nil || s.Released != 1 || s.Deleted != 1 { // a call of which nothing has happened keeps no record
		t.Errorf("%+v", r)
	}
	if r := command(t, "sweep", "--once", "--store", url); r.code != program.ExitOK || r.stdout != "deleted 0, released 0, parked 0\n" {
		t.Errorf("%+v", r)
	}
	if r := command(t, "migrate", "--store", url); r.code != program.ExitOK || !strings.Contains(r.stdout, "up to date") {
		t.Errorf("%+v", r)
	}
	fresh := filepath.Join(t.TempDir(), "fresh.db")
	if r := command(t, "migrate", "--print", "--store", "sqlite:"+fresh); r.code != program.ExitOK || !strings.HasPrefix(r.stdout, "-- Semel's schema for SQLite\n-- 0001") || !strings.Contains(r.stdout, "CREATE TABLE") {
		t.Errorf("%+v", r)
	}
	if r := command(t, "migrate", "--print", "--partitions", "2", "--store", "postgres://h/d"); r.code != program.ExitOK ||
		strings.Count(r.stdout, " PARTITION OF ") != 2 || !strings.Contains(r.stdout, "semel_watermark") || !strings.Contains(r.stdout, "semel_crash_marker") {
		t.Errorf("%+v", r)
	}
	if names, _ := filepath.Glob(fresh + "*"); len(names) > 0 {
		t.Errorf("--print made %q", names)
	}
	if r := command(t, "migrate", "--store", "sqlite:"+fresh, "--json"); r.code != program.ExitOK || !strings.Contains(r.stdout, `"migrated":true`) {
		t.Errorf("%+v", r)
	}
	if r := command(t, "doctor", "--store", "sqlite:"+write(t, "text.db", strings.Repeat("no database", 1000))); r.code != program.ExitFailed {
		t.Errorf("%+v", r)
	}
}

func TestSweep_WithoutOnce_RunsUntilStopped(t *testing.T) {
	t.Parallel()
	url, _ := seed(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &stopAfter{n: 3, stop: cancel}
	if code := Run(ctx, []string{"sweep", "--every", "100ms", "--store", url}, func(string) string { return "" }, nil, out, &strings.Builder{}); code != program.ExitOK || out.n > 0 {
		t.Errorf("exit code %d, %d passes left", code, out.n)
	}
}

// stopAfter stops after n writes.
type stopAfter struct {
	n    int
	stop func()
}

func (s *stopAfter) Write(p []byte) (int, error) {
	if s.n--; s.n == 0 {
		s.stop()
	}
	return len(p), nil
}

func eventuallyOK(t testing.TB, f func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !f(); {
		if time.Now().After(end) {
			t.Fatal("not within 2 minutes")
		}
	}
}
