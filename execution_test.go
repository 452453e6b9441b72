package semel_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func downstreamKeyOf(t testing.TB, g *semel.Guard, call semel.Call, step string) (key string) {
	t.Helper()
	_, err := g.Run(t.Context(), call, func(_ context.Context, x *semel.Execution) (store.Outcome, error) {
		key = x.DownstreamKey(step)
		return store.Outcome{}, semel.NoEffect(errBoom)
	})
	wantErr(t, err, errBoom)
	return key
}

// Rule 15. The golden value must never change, because a retry after an upgrade
// would otherwise send a new key to the downstream system.
func TestDownstreamKey_AnyAttempt_StableAndDistinct(t *testing.T) {
	st := memstore.New(nil)
	g := guard(t, st, nil)
	keyed := guard(t, st, &semel.Options{Secrets: []semel.Secret{secret("a")}})
	golden := downstreamKeyOf(t, g, ann("k"), "psp")
	if golden != "8f5fb077-a889-874e-95ba-175205dfcb64" {
		t.Errorf("the key is %s, which differs from the golden value", golden)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(golden) {
		t.Errorf("%s is not a UUID of version 8", golden)
	}
	for range 3 { // each is another attempt
		if got := downstreamKeyOf(t, g, ann("k"), "psp"); got != golden {
			t.Errorf("another attempt has the key %s, want %s", got, golden)
		}
	}
	if got := downstreamKeyOf(t, keyed, ann("k"), "psp"); got != golden {
		t.Errorf("with a secret the key is %s, want %s", got, golden)
	}
	seen := map[string]bool{golden: true}
	for _, c := range []struct {
		call semel.Call
		step string
	}{
		{ann("k"), "mail"}, {ann("k"), ""}, {ann("k2"), "psp"}, {semel.Call{Operation: pay, Tenant: "bob", Key: "k", Payload: semel.NoPayload()}, "psp"},
		{semel.Call{Operation: pay, Tenant: semel.Shared, Key: "k", Payload: semel.NoPayload()}, "psp"}, {semel.Call{Operation: "x", Tenant: "ann", Key: "k", Payload: semel.NoPayload()}, "psp"},
	} {
		got := downstreamKeyOf(t, g, c.call, c.step)
		if seen[got] {
			t.Errorf("%+v has the same downstream key as another call or name", c)
		}
		seen[got] = true
	}
}

func TestStep_Completed_DoesNotRunAgain(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	created, mailed := 0, 0
	flow := func(ctx context.Context, x *semel.Execution) error {
		id, err := semel.Do(ctx, g, x.Step("create"), func(context.Context, *semel.Execution) (int, error) { created++; return 41, nil })
		if err != nil || id != 41 {
			t.Errorf("create: %v, %v", id, err)
		}
		return semel.Once(ctx, g, x.Step("mail"), func(context.Context, *semel.Execution) error {
			if mailed++; mailed == 1 {
				return errBoom
			}
			return nil
		})
	}
	wantErr(t, semel.Once(t.Context(), g, ann("k"), flow), errBoom)
	if err := semel.Once(t.Context(), g, ann("k"), flow); err != nil {
		t.Fatal(err)
	}
	if created != 1 || mailed != 2 {
		t.Errorf("created %d times and mailed %d times; want 1 and 2", created, mailed)
	}
}

func TestStep_InvalidName_IsRefused(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	err := semel.Once(t.Context(), g, ann("k"), func(ctx context.Context, x *semel.Execution) error {
		for _, name := range []string{"", strings.Repeat("x", 256), "a\x00"} {
			_, err := g.Run(ctx, x.Step(name), never(t))
			wantErr(t, err, semel.ErrInvalid)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFromContext_InHandler_ReturnsExecution(t *testing.T) {
	g := guard(t, memstore.New(nil), &semel.Options{OnDoubt: semel.Park})
	if _, ok := semel.FromContext(t.Context()); ok {
		t.Error("FromContext finds an Execution outside of a handler")
	}
	err := semel.Once(t.Context(), g, semel.Call{Operation: pay, Tenant: semel.Shared, Key: "k", Payload: semel.JSON(1)}, func(ctx context.Context, x *semel.Execution) error {
		if got, ok := semel.FromContext(ctx); !ok || got != x {
			t.Error("the context has another Execution, or none")
		}
		if x.Operation() != pay || x.Tenant() != "" || x.Key() != "k" || x.Policy() != semel.Park || x.Attempt() != 1 || x.Fence() == 0 || len(x.Fingerprint()) != 64 {
			t.Errorf("operation %q, key %q, policy %v, attempt %d, fence %d, fingerprint %q", x.Operation(), x.Key(), x.Policy(), x.Attempt(), x.Fence(), x.Fingerprint())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestStep_NamedRerun_DiffersFromTheRerun(t *testing.T) {
	st := memstore.New(nil)
	plain, again := guard(t, st, nil), guard(t, st, &semel.Options{Rerun: true})
	_, err := plain.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		return store.Outcome{}, semel.Once(ctx, plain, x.Step("rerun"), func(context.Context, *semel.Execution) error { return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = again.Run(t.Context(), ann("k"), answer("x"))
	if err != nil {
		t.Errorf("the rerun met the record of the step: %v", err)
	}
}

func TestStep_NestedNames_DoNotCollide(t *testing.T) {
	g := guard(t, memstore.New(nil), nil)
	do := func(ctx context.Context, c semel.Call, v string) string {
		s, err := semel.Do(ctx, g, c, func(context.Context, *semel.Execution) (string, error) { return v, nil })
		if errors.Is(err, semel.ErrInvalid) {
			return v // the name may be refused
		}
		return s
	}
	_, _ = g.Run(t.Context(), ann("k"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		_, err := g.Run(ctx, x.Step("a"), func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
			do(ctx, x.Step("b"), "a then b")
			return store.Outcome{}, nil
		})
		if got := do(ctx, x.Step("a#b"), "a#b"); got != "a#b" {
			t.Errorf("step a#b got the result of %q", got)
		}
		return store.Outcome{}, err
	})
}
