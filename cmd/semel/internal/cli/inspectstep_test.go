package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

func TestInspect_CallWithSteps_ShowsThemTogether(t *testing.T) {
	url, st := seed(t)
	g, err := semel.New(st, &semel.Options{OnDoubt: semel.Park})
	if err != nil {
		t.Fatal(err)
	}
	call := semel.Call{Operation: "http", Tenant: "ann", Key: "steps", Payload: semel.NoPayload()}
	err = semel.Once(t.Context(), g, call, func(ctx context.Context, x *semel.Execution) error {
		_, err := semel.Do(ctx, g, x.Step("charge"), func(context.Context, *semel.Execution) (string, error) { return "canary-receipt", nil })
		failed := semel.Once(ctx, g, x.Step("mail"), func(context.Context, *semel.Execution) error { return semel.Final(errors.New("no address")) })
		return errors.Join(err, errors.New(failed.Error()))
	})
	if !errors.Is(err, semel.ErrParked) {
		t.Fatal(err)
	}
	get := []string{"inspect", "get", "steps", "--tenant", "ann", "--store", url}
	text := command(t, get...)
	for _, want := range []string{"step charge:", "done at ", "step mail:", "failed for good at ", "in attempt 1"} {
		if !strings.Contains(text.stdout, want) {
			t.Errorf("the output lacks %q: %s", want, text.stdout)
		}
	}
	if strings.Contains(text.stdout, "canary") {
		t.Errorf("the output has a result: %s", text.stdout)
	}
	if text = command(t, append(get, "--show-body")...); !strings.Contains(text.stdout, "canary-receipt") {
		t.Errorf("the output lacks the result: %s", text.stdout)
	}
	resolve := []string{
		"inspect", "resolve", "steps", "--tenant", "ann", "--store", url, "--fence", fenceOf(t, st, "steps"), "--verdict", "did-not-happen", "--reason", "r", "--json",
	}
	for name, args := range map[string][]string{
		"get": append(get, "--json"), "list": {"inspect", "list", "--store", url, "--state", "unknown,released", "--steps", "--json"}, "resolve": resolve,
	} {
		r := command(t, args...)
		if r.code != program.ExitOK {
			t.Fatalf("%s: %+v", name, r)
		}
		found := false
		for line := range strings.Lines(r.stdout) {
			var v view
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if v.Key != "steps" {
				continue
			}
			found = true
			if s := v.Steps; len(s) != 2 || s[0].Name != "charge" || s[0].Attempt != 1 || s[0].Failed || s[0].Result.Bytes == 0 || s[0].Recorded.IsZero() || s[1].Name != "mail" || !s[1].Failed {
				t.Errorf("%s: the steps are %+v", name, s)
			}
		}
		if !found {
			t.Errorf("%s: the record is missing: %s", name, r.stdout)
		}
	}
}
