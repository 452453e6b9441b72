package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

type receipt struct{ ID int }

// A verdict that no caller could read is refused, and the right one is read.
func TestInspectResolve_CallOfDo_NeedsItsCodec(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	g, err := semel.New(st, &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "pay", Tenant: "ann", Key: "k", Payload: semel.JSON("x")}
	pay := func() (receipt, error) {
		return semel.Do(t.Context(), g, call, func(context.Context, *semel.Execution) (receipt, error) { return receipt{}, errors.New("lost") })
	}
	if _, err := pay(); err == nil {
		t.Fatal("it is not parked")
	}
	f, err := st.Get(t.Context(), store.Key{Operation: "pay", Tenant: "ann", Value: "k"})
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(stdin string, args ...string) result {
		return commandIn(t, nil, stdin, append([]string{"inspect", "resolve", "k", "--operation", "pay", "--tenant", "ann", "--store", "sqlite:" + path,
			"--fence", fmt.Sprint(f.Record.Fence), "--reason", "r", "--verdict", "happened"}, args...)...)
	}
	if r := resolve("", "--status", "201"); r.code != program.ExitFailed || !strings.Contains(r.stderr, "--codec json") || !strings.Contains(r.stderr, `"result":"not done"`) {
		t.Errorf("a status: %+v", r)
	}
	if r := resolve("{", "--codec", "json", "--body-file", "-"); r.code != program.ExitUsage {
		t.Errorf("no JSON: %+v", r)
	}
	// The command that inspect get prints works as it is.
	shown := command(t, "inspect", "get", "k", "--operation", "pay", "--tenant", "ann", "--store", "sqlite:"+path)
	_, next, _ := strings.Cut(shown.stdout, "one of:")
	printed, _, _ := strings.Cut(strings.TrimSpace(next), "\n")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("result.json", []byte(`{"ID":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := command(t, strings.Fields(strings.TrimPrefix(printed, "semel "))...); r.code != program.ExitOK {
		t.Fatalf("%s: %+v", printed, r)
	}
	if got, err := pay(); err != nil || got.ID != 7 {
		t.Errorf("the caller gets %+v, %v", got, err)
	}
}

func TestInspectResolve_RequestOverHTTP_RefusesCodec(t *testing.T) {
	url, st := seed(t)
	r := commandIn(t, nil, "{}", "inspect", "resolve", "parked", "--tenant", "ann", "--store", url, "--fence", fenceOf(t, st, "parked"),
		"--reason", "r", "--verdict", "happened", "--codec", "json", "--body-file", "-")
	if r.code != program.ExitFailed || !strings.Contains(r.stderr, "give --status") {
		t.Errorf("%+v", r)
	}
}

// With --secret-file the hash has another name, and the request is still one over HTTP.
func TestInspectResolve_RequestHashedWithSecret_TakesStatus(t *testing.T) {
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	one, two := semel.Secret{ID: "one", Key: make([]byte, 16)}, semel.Secret{ID: "two", Key: make([]byte, 32)}
	pay := func(secrets ...semel.Secret) *httptest.ResponseRecorder {
		g, err := semel.New(st, &semel.Options{OnDoubt: semel.Park, Secrets: secrets})
		if err != nil {
			t.Fatal(err)
		}
		protect, err := semelhttp.Middleware(g, func(*http.Request) (string, error) { return "ann", nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/pay", strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", `"parked"`)
		w := httptest.NewRecorder()
		mux := http.NewServeMux()
		mux.Handle("POST /pay", protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })))
		mux.ServeHTTP(w, r)
		return w
	}
	pay(one)
	f, err := st.Get(t.Context(), store.Key{Operation: "POST /pay", Tenant: "ann", Value: "parked"})
	if err != nil || f.Record.State != store.Unknown || f.Record.Fingerprint.KeyID != "one" {
		t.Fatalf("%+v, %v", f.Record, err)
	}
	flags := []string{"--operation", "POST /pay", "--tenant", "ann", "--store", "sqlite:" + path}
	if r := command(t, append([]string{"inspect", "get", "parked"}, flags...)...); !strings.Contains(r.stdout, "--status") {
		t.Errorf("the next step has no status: %s", r.stdout)
	}
	flags = append(flags, "--fence", fmt.Sprint(f.Record.Fence), "--reason", "r", "--verdict", "happened", "--body-file", "-")
	if r := commandIn(t, nil, "{}", append([]string{"inspect", "resolve", "parked", "--codec", "json"}, flags...)...); r.code != program.ExitFailed {
		t.Errorf("a result of a call: %+v", r)
	}
	if r := commandIn(t, nil, "made by hand", append([]string{"inspect", "resolve", "parked", "--status", "201"}, flags...)...); r.code != program.ExitOK {
		t.Errorf("a status: %+v", r)
	}
	if w := pay(two, one); w.Code != http.StatusCreated || w.Body.String() != "made by hand" {
		t.Errorf("the client gets %d %s", w.Code, w.Body)
	}
}

func TestInspectGet_HashOfLogs_FindsRecord(t *testing.T) {
	url, st := seed(t)
	hash := store.Key{Operation: "http", Tenant: "ann", Value: "done"}.Short()
	if r := command(t, "inspect", "get", hash, "--store", url, "--json"); r.code != program.ExitOK || !strings.Contains(r.stdout, `"key":"done"`) {
		t.Errorf("%+v", r)
	}
	if r := command(t, "inspect", "get", "00000000", "--store", url); r.code != program.ExitFailed || !strings.Contains(r.stderr, "not found: ") {
		t.Errorf("no such hash: %+v", r)
	}
	for _, form := range []string{hash, strings.ToUpper(hash)} {
		if r := command(t, "inspect", "get", form, "--tenant", "ann", "--store", url, "--json"); r.code != program.ExitOK || !strings.Contains(r.stdout, `"key":"done"`) {
			t.Errorf("%s of a tenant: %+v", form, r)
		}
		const want = `tenant "bob", this key; nor is there another key of this tenant with this hash. A key of another tenant has it: leave out --tenant`
		if r := command(t, "inspect", "get", form, "--tenant", "bob", "--store", url); r.code != program.ExitFailed || !strings.Contains(r.stderr, want) {
			t.Errorf("%s of another tenant: %+v", form, r)
		}
	}
	hash = store.Key{Operation: "http", Tenant: "ann", Value: "parked"}.Short()
	r := command(t, "inspect", "resolve", hash, "--store", url, "--fence", fenceOf(t, st, "parked"), "--reason", "r", "--verdict", "did-not-happen")
	if r.code != program.ExitOK {
		t.Errorf("resolve by hash: %+v", r)
	}
}

// --operation narrows the search for a hash, so that a verdict is not given for the key of
// another operation.
func TestInspect_HashAndOperation_OfThatOperationOnly(t *testing.T) {
	url, st := seed(t)
	hash := store.Key{Operation: "http", Tenant: "ann", Value: "parked"}.Short()
	const want = `operation "pay", no tenant, this key; nor is there another key of this operation with this hash. A key of another operation has it: leave out --operation`
	r := command(t, "inspect", "resolve", hash, "--operation", "pay", "--store", url, "--fence", fenceOf(t, st, "parked"), "--reason", "r", "--verdict", "did-not-happen")
	if r.code != program.ExitFailed || !strings.Contains(r.stderr, want) {
		t.Errorf("of another operation: %+v", r)
	}
	if r := command(t, "inspect", "get", hash, "--operation", "http", "--tenant", "ann", "--store", url, "--json"); r.code != program.ExitOK || !strings.Contains(r.stdout, `"state":"unknown"`) {
		t.Errorf("of its operation: %+v", r)
	}
}

func TestInspectList_StateParked_IsUnknown(t *testing.T) {
	url, _ := seed(t)
	if r := command(t, "inspect", "list", "--state", "parked", "--store", url, "--json"); r.code != program.ExitOK || strings.Count(r.stdout, "\n") != 1 || !strings.Contains(r.stdout, `"key":"parked"`) {
		t.Errorf("%+v", r)
	}
}

// A call that runs cannot be resolved. Both commands say when its lease ends, and what to do then.
func TestInspect_Running_NamesEndOfLeaseAndSweep(t *testing.T) {
	t.Parallel()
	url, st := seed(t)
	k := store.Key{Operation: "http", Tenant: "ann", Value: "running"}
	if _, err := st.Claim(t.Context(), store.Proposal{Key: k, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Hour}); err != nil {
		t.Fatal(err)
	}
	f, err := st.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	until := "If the process has died, after " + f.Record.Until.Format(time.RFC3339Nano) + ":"
	r := command(t, "inspect", "get", "running", "--tenant", "ann", "--store", url)
	if !strings.Contains(r.stdout, "wait: it runs, and its process renews the lease. "+until) || !strings.Contains(r.stdout, "semel sweep --once --store "+url) {
		t.Errorf("get: %+v", r)
	}
	r = command(t, "inspect", "resolve", "running", "--tenant", "ann", "--store", url, "--fence", fmt.Sprint(f.Record.Fence), "--verdict", "failed", "--reason", "r")
	if r.code != program.ExitFailed || !strings.Contains(r.stderr, until+" semel sweep --once --store "+url) {
		t.Errorf("resolve: %+v", r)
	}
}

// A verdict would end a saga without undoing its steps. The refusal has the commands that
// decide about it, which semel inspect get shows, too.
func TestInspectResolve_Saga_IsRefusedWithItsCommands(t *testing.T) {
	t.Parallel()
	url, s, st := stuckSaga(t)
	flags := []string{"o1", "--operation", "order##saga", "--tenant", "ann", "--store", url}
	change := append(slices.Clone(flags), "--reason", "ticket 12", "--fence", sagaFence(t, st))
	shown := command(t, append([]string{"inspect", "get"}, flags...)...).stdout
	skip := "semel saga skip order o1 charge --result JSON --tenant ann --store " + url
	if !strings.Contains(shown, skip) {
		t.Errorf("no %q in\n%s", skip, shown)
	}
	const verdict = "and a verdict would not undo its steps"
	for _, c := range []struct {
		args []string
		why  string
	}{
		{[]string{"resolve", "--verdict", "failed"}, verdict},
		{[]string{"resolve", "--verdict", "did-not-happen"}, verdict},
		{[]string{"resolve", "--verdict", "happened", "--codec", "json", "--body-file", "-"}, verdict},
		{[]string{"reopen"}, "and it has not failed"},
	} {
		args := c.args
		r := commandIn(t, nil, `"done"`, append(append([]string{"inspect"}, args...), change...)...)
		if r.code != program.ExitFailed || !strings.Contains(r.stderr, "nothing was changed: this is a saga, "+c.why) || !strings.Contains(r.stderr, skip) || !strings.Contains(r.stderr, "semel saga back order o1") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if f, err := st.Get(t.Context(), saga.Key("order", "ann", "o1")); err != nil || f.Record.State != store.Unknown {
		t.Errorf("the saga is %v, %v", f.Record.State, err)
	}
	if r := decideSaga(t, url, st, "skip", "order", "o1", "charge", "--result", `"paid"`); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	if _, err := s.Do(t.Context(), "ann", "o1", "stuck"); err != nil {
		t.Fatal(err)
	}
	r := command(t, append([]string{"inspect", "resolve", "--verdict", "failed"}, change...)...)
	if r.code != program.ExitFailed || !strings.Contains(r.stderr, "look at it: semel saga show order o1 --tenant ann --store "+url) {
		t.Errorf("of a saga that has ended: %+v", r)
	}
}

// The operator cannot give another answer afterwards, so the command says what became of this one.
func TestInspectResolve_AnswerTooLargeForStore_SaysThatItIsNotKept(t *testing.T) {
	st, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, gone := range []bool{true, false} {
		k := store.Key{Operation: "pay", Tenant: "ann", Value: fmt.Sprint("k", gone)}
		f, err := st.Claim(t.Context(), store.Proposal{Key: k, State: store.Processing, Owner: store.Owner{1}, Attempt: 1, Lease: time.Minute, Keep: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		done := store.Settlement{State: store.Completed, Attempt: 1, Keep: time.Hour, Outcome: store.Outcome{Code: 201, Gone: gone}}
		if err := st.Settle(t.Context(), f.Record.Lease(), done); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := new(inspectResolveCmd).show(t.Context(), &env{stdout: &out}, st, k); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "is not kept") != gone {
			t.Errorf("an answer that is gone (%v): %q", gone, out.String())
		}
	}
}
