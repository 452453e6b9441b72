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
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Do(ctx, "ann", "o2", "waiting"); !errors.Is(err, semel.ErrCanceled) {
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

func TestSagaList_ShowsSagasThatHaveNotEnded(t *testing.T) {
	t.Parallel()
	url, _, _ := stuckSaga(t)
	for _, c := range []struct {
		args []string
		want string
	}{{nil, "o1 stuck, o2 waiting"}, {[]string{"--stuck"}, "o1 stuck"}} {
		r := command(t, append([]string{"saga", "list", "order", "--store", url, "--json"}, c.args...)...)
		var got []string
		for line := range strings.Lines(r.stdout) {
			var l listedSaga
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			got = append(got, l.ID+" "+l.State)
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
