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
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/sqlitestore"
)

// stuckSaga is a store with a saga whose Parked step is in doubt, and one that waits.
func stuckSaga(t *testing.T) (url string, s *saga.Saga[string, string], st *sqlitestore.Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	guard, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	fails := true
	s, err = saga.New(guard, saga.Definition[string, string]{
		Name: "order", Steps: []string{"hold", "charge", "wait"},
		Run: func(ctx context.Context, r *saga.Run, in string) (string, error) {
			if in == "waiting" {
				return "", saga.Sleep(ctx, r, "wait", time.Hour)
			}
			_, err := saga.Step(ctx, r, "hold", func(context.Context, saga.At) (string, error) { return "held", nil },
				func(context.Context, saga.At, string) error { return nil })
			if err != nil {
				return "", err
			}
			return saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) {
				if fails {
					fails = false
					return "", errors.New("connection reset")
				}
				return "charged", nil
			}, nil, saga.Parked())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), "ann", "o1", "stuck"); !errors.Is(err, semel.ErrParked) {
		t.Fatalf("error %v, want ErrParked", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.Do(ctx, "ann", "o2", "waiting")
		ended <- err
	}()
	eventually(t, time.Minute, "o2 waits for its timer", func() bool {
		f, err := st.Get(t.Context(), saga.Key("order", "ann", "o2"))
		return err == nil && f.Record.State == store.Released
	})
	cancel()
	if err := <-ended; !errors.Is(err, semel.ErrCanceled) {
		t.Fatalf("error %v, want ErrCanceled", err)
	}
	return "sqlite:" + path, s, st
}

func sagaFence(t *testing.T, st store.Store) string {
	t.Helper()
	f, err := st.Get(t.Context(), saga.Key("order", "ann", "o1"))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(f.Record.Fence)
}

// Nothing is in doubt about a saga that has used up its attempts: it is stuck. The list shows
// the cause, which is at the end of its error.
func TestSagaShow_AttemptsUsedUp_SaysStuckAndCause(t *testing.T) {
	t.Parallel()
	url, _, st := stuckSaga(t)
	guard, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	cause := strings.Repeat("the mail server is away; ", 8) + "554 no such mailbox"
	mail, err := saga.New(guard, saga.Definition[string, string]{
		Name: "mail", Steps: []string{"notify"}, MaxAttempts: 1,
		Run: func(ctx context.Context, r *saga.Run, _ string) (string, error) {
			return saga.Step(ctx, r, "notify", func(context.Context, saga.At) (string, error) { return "", errors.New(cause) }, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mail.Do(t.Context(), "ann", "m1", "in"); !errors.Is(err, semel.ErrParked) || !strings.HasPrefix(err.Error(), "semel: saga stuck (operation ") {
		t.Fatalf("error %v, want one that says stuck", err)
	}
	shown := command(t, "saga", "show", "mail", "m1", "--tenant", "ann", "--store", url).stdout
	if !strings.Contains(shown, "unknown (stuck)\n") || !strings.Contains(shown, "stuck since:") || strings.Contains(shown, "in doubt since") || strings.Contains(shown, "on doubt") {
		t.Errorf("the page of the saga is\n%s", shown)
	}
	if r := command(t, "saga", "list", "mail", "--store", url); !strings.Contains(r.stdout, "MaxAttempts (1)") || !strings.Contains(r.stdout, "554 no such mailbox\n") {
		t.Errorf("%+v", r)
	}
}

// A saga that is not there, or a file that is not, is answered with the commands for sagas.
func TestSaga_NotThere_NamesSagaList(t *testing.T) {
	t.Parallel()
	url, _, _ := stuckSaga(t)
	for tenant, want := range map[string]string{"": `not found: saga "order" without a tenant with this id; if it is of a tenant, give --tenant. `, "bob": `not found: saga "order" of tenant "bob" with this id. `} {
		for _, args := range [][]string{{"show", "order", "o1"}, {"retry", "order", "o1", "--fence", "1", "--reason", "r"}} {
			r := command(t, append(append([]string{"saga"}, args...), "--store", url, "--tenant", tenant)...)
			if r.code != program.ExitFailed || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, "semel saga list shows the names, tenants and ids") || strings.Contains(r.stderr, "--operation") {
				t.Errorf("%v, tenant %q: %+v", args, tenant, r)
			}
		}
	}
	absent := "sqlite:" + filepath.Join(t.TempDir(), "no.db")
	for _, args := range [][]string{{"list"}, {"stats", "order"}, {"show", "order", "o1"}, {"back", "order", "o1", "--fence", "1", "--reason", "r"}} {
		r := command(t, append(append([]string{"saga"}, args...), "--store", absent)...)
		if r.code != program.ExitFailed || !strings.Contains(r.stderr, "there is no such file; give the store that your service was started with\n") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestSagaList_ShowsSagasThatHaveNotEnded(t *testing.T) {
	t.Parallel()
	url, _, _ := stuckSaga(t)
	for _, c := range []struct {
		args []string
		want string
	}{{nil, "o1 unknown, o2 released"}, {[]string{"--stuck"}, "o1 unknown"}} {
		r := command(t, append([]string{"saga", "list", "order", "--store", url, "--json"}, c.args...)...)
		var got []string
		for line := range strings.Lines(r.stdout) {
			var l listedSaga
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			got = append(got, l.ID+" "+l.State.String())
		}
		if strings.Join(got, ", ") != c.want || r.code != program.ExitOK {
			t.Errorf("%v: %q, want %q: %+v", c.args, got, c.want, r)
		}
	}
	if r := command(t, "saga", "list", "order", "--store", url); !strings.Contains(r.stdout, "connection reset") {
		t.Errorf("%+v", r)
	}
}

func TestSagaShow_HasStepsInOrder(t *testing.T) {
	t.Parallel()
	url, _, _ := stuckSaga(t)
	r := command(t, "saga", "show", "order", "o1", "--tenant", "ann", "--store", url, "--show-body", "--json")
	var v view
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	var names []string
	for _, s := range v.Steps {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "saga:input hold charge:begun:1" {
		t.Errorf("the steps are %q", got)
	}
	r = command(t, "saga", "show", "order", "o1", "--tenant", "ann", "--store", url)
	if !strings.Contains(r.stdout, "semel saga retry order o1 --tenant ann --store sqlite:") || strings.Contains(r.stdout, "inspect resolve") {
		t.Errorf("the next step is %s", r.stdout)
	}
	if r = command(t, "inspect", "list", "--state", "parked", "--store", url); !strings.Contains(r.stdout, "  order##saga  ") {
		t.Errorf("a list of records finds sagas so: %s", r.stdout)
	}
}

func TestSagaDecisions_StuckSaga_GoesOnAsDecided(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		out  string
		code string
	}{
		"retry": {[]string{"retry", "order", "o1", "--not-happened", "charge"}, "charged", ""},
		"skip":  {[]string{"skip", "order", "o1", "charge", "--result", `"by hand"`}, "by hand", ""},
		"back":  {[]string{"back", "order", "o1", "--not-happened", "charge"}, "", saga.CodeOperator},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, s, st := stuckSaga(t)
			args := append(append([]string{"saga"}, c.args...), "--tenant", "ann", "--store", url, "--reason", "ticket 17")
			if r := command(t, append(args, "--fence", "1")...); r.code != program.ExitFailed || !strings.Contains(r.stderr, "its fence is now") {
				t.Errorf("another fence: %+v", r)
			}
			r := command(t, append(args, "--fence", sagaFence(t, st))...)
			if r.code != program.ExitOK || !strings.Contains(r.stderr, `"reason":"ticket 17"`) {
				t.Fatalf("%+v", r)
			}
			for _, look := range [][]string{{"saga", "list", "order"}, {"saga", "show", "order", "o1", "--tenant", "ann"}, {"inspect", "list", "--operation", "order##saga"}} {
				wantDecisionIsNoError(t, "ticket 17", append(look, "--store", url)...)
			}
			out, err := s.Do(t.Context(), "ann", "o1", "stuck")
			f, failed := errors.AsType[*semel.Failure](err)
			if c.code == "" && (err != nil || out != c.out) || c.code != "" && (!failed || f.Code != c.code) {
				t.Errorf("the saga ends with %q, %v", out, err)
			}
			shown := command(t, "saga", "show", "order", "o1", "--tenant", "ann", "--store", url, "--show-body")
			if !strings.Contains(shown.stdout, "ticket 17") {
				t.Errorf("the record does not say why: %+v", shown)
			}
		})
	}
}

// wantDecisionIsNoError fails unless a command shows the record with this decision, and not as
// its last error.
func wantDecisionIsNoError(t *testing.T, why string, args ...string) {
	t.Helper()
	for line := range strings.Lines(command(t, append(args, "--json")...).stdout) {
		var v struct {
			LastError    string `json:"last_error"`
			LastDecision string `json:"last_decision"`
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil || strings.Contains(v.LastError, why) {
			t.Errorf("%v: error %v: %s", args, err, line)
		}
		if strings.Contains(v.LastDecision, why) {
			return
		}
	}
	t.Errorf("%v: no record has the decision", args)
}

// The saga of a phone company fails with an error that begins as a decision does.
func TestSagaList_ErrorLooksLikeDecision_IsShownAsError(t *testing.T) {
	for name, opts := range map[string][]saga.StepOption{"released": nil, "stuck": {saga.Parked()}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "semel.db")
			st, err := sqlitestore.Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			guard, err := semel.New(st, &semel.Options{Observe: func(_ context.Context, e semel.Event) {
				if e.Kind == semel.EventReleased || e.Kind == semel.EventParked {
					cancel() // Do tries again otherwise
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			s, err := saga.New(guard, saga.Definition[string, string]{
				Name: "order", Steps: []string{"route"},
				Run: func(ctx context.Context, r *saga.Run, _ string) (string, error) {
					return saga.Step(ctx, r, "route", func(context.Context, saga.At) (string, error) {
						return "", errors.New("operator: no route to subscriber")
					}, nil, opts...)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Do(ctx, "ann", "o1", "in"); err == nil {
				t.Fatal("the saga did not fail")
			}
			for _, look := range [][]string{{"saga", "list", "order"}, {"saga", "show", "order", "o1", "--tenant", "ann"}} {
				look = append(look, "--store", "sqlite:"+path)
				r, j := command(t, look...), command(t, append(look, "--json")...)
				if !strings.Contains(r.stdout, "no route") || !strings.Contains(j.stdout, `"last_error":"`) || strings.Contains(j.stdout, "last_decision") {
					t.Errorf("%v: %s%s", look, r.stdout, j.stdout)
				}
			}
		})
	}
}
