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

// An operator asks the other system by the key that it got, and only handlers have an
// Execution. The verdict is kept for as long as the longest default of a program.
func TestInspectGet_DownstreamKey_IsTheHandlers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "semel.db")
	st, err := sqlitestore.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	g, err := semel.New(st, &semel.Options{OnDoubt: semel.Park, Retention: 7 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var bank, inStep string
	_, err = semel.Do(t.Context(), g, semel.Call{Operation: "pay", Tenant: "ann", Key: "k", Payload: semel.NoPayload()}, func(ctx context.Context, x *semel.Execution) (int, error) {
		bank, inStep = x.DownstreamKey("bank"), x.StepDownstreamKey("charge", "bank")
		return 0, errors.New("lost")
	})
	if err == nil {
		t.Fatal("it is not parked")
	}
	flags := []string{"k", "--operation", "pay", "--tenant", "ann", "--store", "sqlite:" + path}
	get := append([]string{"inspect", "get", "--downstream-key", "bank", "--downstream-key", "charge#bank"}, flags...)
	r := command(t, get...)
	fields := strings.Join(strings.Fields(r.stdout), " ")
	for _, want := range []string{"key sent to bank: " + bank, "key sent to charge#bank: " + inStep, "--codec raw", " --downstream-key NAME", "--retention 7d"} {
		if !strings.Contains(fields, want) {
			t.Errorf("no %q in %+v", want, r)
		}
	}
	var v view
	if r = command(t, append(get, "--json")...); json.Unmarshal([]byte(r.stdout), &v) != nil || len(v.DownstreamKeys) != 2 || v.DownstreamKeys[1] != (downstreamKeyView{"charge#bank", inStep}) {
		t.Errorf("%+v", r)
	}
	k := store.Key{Operation: "pay", Tenant: "ann", Value: "k"}
	f, err := st.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	if r = command(t, append([]string{"inspect", "resolve", "--verdict", "happened", "--codec", "raw", "--reason", "r", "--fence", fmt.Sprint(f.Record.Fence)}, flags...)...); r.code != program.ExitOK {
		t.Fatalf("%+v", r)
	}
	if f, err = st.Get(t.Context(), k); err != nil || f.Record.Expires.Sub(f.Record.Completed) < 7*24*time.Hour {
		t.Errorf("the verdict is kept for %v, error %v", f.Record.Expires.Sub(f.Record.Completed), err)
	}
}

// The step that is stuck is not recorded as done, but as begun, with the key that it has sent.
func TestSagaShow_Steps_HaveTheKeysThatTheySent(t *testing.T) {
	t.Parallel()
	st, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "semel.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	guard, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	sent := map[string]string{}
	s, err := saga.New(guard, saga.Definition[string, string]{
		Name: "order", Steps: []string{"hold", "charge"},
		Run: func(ctx context.Context, r *saga.Run, _ string) (string, error) {
			if _, err := saga.Step(ctx, r, "hold", func(_ context.Context, at saga.At) (string, error) { sent["hold"] = at.Key(); return "", nil },
				func(_ context.Context, at saga.At, _ string) error { sent["undo"] = at.Key(); return nil }); err != nil {
				return "", err
			}
			return saga.Step(ctx, r, "charge", func(_ context.Context, at saga.At) (string, error) {
				sent["charge"] = at.Key()
				return "", errors.New("connection reset")
			}, nil, saga.Parked())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), "ann", "o1", "x"); !errors.Is(err, semel.ErrParked) {
		t.Fatal(err)
	}
	k := saga.Key("order", "ann", "o1")
	f, steps, err := lookWithSteps(t.Context(), st, k)
	if err != nil {
		t.Fatal(err)
	}
	v := viewOf(&f, false)
	v.addSteps(steps, false)
	var text strings.Builder
	if err := v.print(&text); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"hold", "charge"} {
		if !strings.Contains(text.String(), "its downstream key: "+sent[step]+"\n") {
			t.Errorf("%s: no %s in\n%s", step, sent[step], text.String())
		}
	}
	if n := strings.Count(text.String(), "downstream key"); n != 2 {
		t.Errorf("%d keys, want 2: the input has none\n%s", n, text.String())
	}
	if got := sagaStepKey(k, "saga:back"); got != "" {
		t.Errorf("the turn has the key %s", got)
	}
}

// A record that is kept for no time, because nothing was sent, has not expired in an
// operator's words.
func TestView_ReleasedForNoTime_SaysThatNothingHappened(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for kept, want := range map[time.Duration]string{0: "released (nothing happened)", time.Hour: "released (expired)"} {
		f := store.Found{Now: at.Add(2 * time.Hour), Record: store.Record{State: store.Released, Updated: at, Expires: at.Add(kept)}}
		if v := viewOf(&f, false); v.state() != want {
			t.Errorf("kept for %v: %q, want %q", kept, v.state(), want)
		}
	}
}
