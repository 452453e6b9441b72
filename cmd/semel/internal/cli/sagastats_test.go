package cli

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/program"
	"github.com/semel-go/semel/cmd/semel/internal/storeurl"
	"github.com/semel-go/semel/saga"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// dueAndStuck leaves two stuck sagas and three that no worker has taken up in a store.
func dueAndStuck(t *testing.T, url string) {
	t.Helper()
	u, err := storeurl.Parse(url, "--store")
	if err != nil {
		t.Fatal(err)
	}
	st, err := u.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	guard, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := saga.New(guard, saga.Definition[string, string]{
		Name: "order", Steps: []string{"charge"}, MaxAttempts: 1,
		Run: func(ctx context.Context, r *saga.Run, in string) (string, error) {
			return saga.Step(ctx, r, "charge", func(context.Context, saga.At) (string, error) { return "", errors.New("connection reset") }, nil)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"1", "2"} {
		_, _ = s.Do(t.Context(), "ann", id, "") // the counts say how it ended
	}
	for _, id := range []string{"3", "4", "5"} {
		if err := s.Start(t.Context(), "ann", id, ""); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSagaStats_StuckAndDue_Counted(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(t *testing.T) string{
		"SQLite":     func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "semel.db") },
		"PostgreSQL": func(t *testing.T) string { return pgtest.Start(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := url(t)
			dueAndStuck(t, url)
			r := command(t, "saga", "stats", "order", "--store", url, "--json")
			var got sagaStatsView
			if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
			if got.Stuck != 2 || got.Due != 3 || got.OldestDueSeconds <= 0 {
				t.Errorf("stats %+v, want 2 stuck and 3 due", got)
			}
			if r := command(t, "saga", "stats", "order", "--store", url); !strings.HasPrefix(r.stdout, "2 stuck, 3 due; the first has been due for ") {
				t.Errorf("%+v", r)
			}
			r = command(t, "saga", "stats", "order", "--store", url, "--prometheus")
			for _, line := range []string{"# TYPE semel_saga_stuck gauge\nsemel_saga_stuck{saga=\"order\"} 2\n", "semel_saga_due{saga=\"order\"} 3\n", "semel_saga_oldest_due_seconds{saga=\"order\"} "} {
				if !strings.Contains(r.stdout, line) || r.code != program.ExitOK {
					t.Errorf("%q is not in %+v", line, r)
				}
			}
			if r := command(t, "saga", "stats", "no\"body", "--store", url, "--prometheus"); !strings.Contains(r.stdout, `semel_saga_stuck{saga="no\"body"} 0`) {
				t.Errorf("%+v", r)
			}
			if r := command(t, "saga", "stats", "nobody", "--store", url); r.stdout != "0 stuck, 0 due\n" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A step that has used up its attempts can be skipped by the command that is shown.
func TestSagaShow_StepOutOfAttempts_OffersSkip(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "semel.db")
	dueAndStuck(t, url)
	text := command(t, "saga", "show", "order", "1", "--tenant", "ann", "--store", url).stdout
	for _, want := range []string{"semel saga skip order 1 charge --result JSON --tenant ann", "semel saga retry order 1", "semel saga back order 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestSagaStats_TwoFormats_IsUsageError(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "semel.db")
	if r := command(t, "saga", "stats", "order", "--store", url, "--json", "--prometheus"); r.code != program.ExitUsage || !strings.Contains(r.stderr, "--prometheus") {
		t.Errorf("%+v", r)
	}
}
