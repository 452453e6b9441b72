package semelconnect

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestUnary_InProgressOnAnotherServer_IsAbortedWithRetryAfter(t *testing.T) {
	st := memstore.New(nil)
	started, end := make(chan struct{}), make(chan struct{})
	var effects atomic.Int32
	first := serveOver(t, st, nil, Options{}, &effects, func(ctx context.Context, n int32) (*text, error) {
		close(started)
		<-end
		return named(ctx, n)
	})
	second := serveOver(t, st, nil, Options{}, &effects, named)
	var running sync.WaitGroup
	running.Go(func() {
		if name, _, err := send(t.Context(), first, "k", 1); err != nil || name != "effect 1" {
			t.Errorf("the first request got %q, %v", name, err)
		}
	})
	<-started
	_, replayed, err := send(t.Context(), second, "k", 1)
	e, _ := errors.AsType[*connect.Error](err)
	if e == nil || e.Code() != connect.CodeAborted || e.Meta().Get("Retry-After") == "" || replayed {
		t.Errorf("while it runs, a duplicate got %v, want aborted with Retry-After", err)
	} else if seconds, err := strconv.Atoi(e.Meta().Get("Retry-After")); seconds > 10 || err != nil {
		t.Errorf("a duplicate of a run of some milliseconds is to come after %d s, %v", seconds, err)
	}
	_, _, err = send(t.Context(), second, "k", 2)
	if e, _ := errors.AsType[*connect.Error](err); e == nil || e.Code() != connect.CodeInvalidArgument || e.Meta().Get("Retry-After") != "" {
		t.Errorf("while it runs, another message with its key got %v, want invalid_argument", err)
	}
	close(end)
	running.Wait()
	if name, replayed, err := send(t.Context(), second, "k", 1); err != nil || name != "effect 1" || !replayed || effects.Load() != 1 {
		t.Errorf("afterwards a duplicate got %q, replayed %v, %v, after %d effects", name, replayed, err, effects.Load())
	}
}

func TestUnary_SameKeyOfTwoTenants_EachRunsOnce(t *testing.T) {
	var effects atomic.Int32
	account := func(_ context.Context, r connect.AnyRequest) (string, error) {
		name := r.Header().Get("Account")
		if name == "" {
			return "", errors.New("not authenticated")
		}
		return name, nil
	}
	c := serve(t, nil, Options{Tenant: account}, &effects, named)
	for i, step := range []struct {
		account string
		number  int64 // the message
		want    string
		replay  bool
	}{{"ann", 1, "effect 1", false}, {"bob", 2, "effect 2", false}, {"ann", 1, "effect 1", true}, {"bob", 2, "effect 2", true}} {
		req := connect.NewRequest(wrapperspb.Int64(step.number))
		req.Header().Set("Idempotency-Key", "k")
		req.Header().Set("Account", step.account)
		resp, err := c.CallUnary(t.Context(), req)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if got := resp.Msg.GetValue(); got != step.want || (resp.Header().Get("Idempotent-Replayed") == "true") != step.replay {
			t.Errorf("request %d of %s got %q, header %v", i, step.account, got, resp.Header())
		}
	}
	if _, _, err := send(t.Context(), c, "k", 1); connect.CodeOf(err) != connect.CodeUnauthenticated || effects.Load() != 2 {
		t.Errorf("without an account: %v, %d effects", err, effects.Load())
	}
}

// Under Park an error without NoEffect would leave the key in doubt.
func TestUnary_NoEffect_KeyIsFreeForAnyMessage(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code connect.Code
	}{
		"a code of doubt": {semel.NoEffect(connect.NewError(connect.CodeInternal, errors.New("no room"))), connect.CodeInternal},
		"a kept code":     {semel.NoEffect(connect.NewError(connect.CodeNotFound, errors.New("no room"))), connect.CodeNotFound},
		"no code":         {semel.NoEffect(errors.New("no room")), connect.CodeUnknown},
		"a failed step":   {semel.NoEffect(&semel.Failure{Code: "stock", Message: "no room"}), connect.CodeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			var effects atomic.Int32
			client := serve(t, &semel.Options{OnDoubt: semel.Park}, Options{}, &effects, func(ctx context.Context, n int32) (*text, error) {
				if n == 1 {
					return nil, c.err
				}
				return named(ctx, n)
			})
			_, _, err := send(t.Context(), client, "k", 1)
			if e, _ := errors.AsType[*connect.Error](err); e == nil || e.Code() != c.code || e.Message() != "no room" {
				t.Errorf("the first answer is %v, want %v: no room", err, c.code)
			}
			if name, replayed, err := send(t.Context(), client, "k", 2); err != nil || name != "effect 2" || replayed {
				t.Errorf("another message with the key got %q, replayed %v, %v", name, replayed, err)
			}
			if name, replayed, err := send(t.Context(), client, "k", 2); err != nil || name != "effect 2" || !replayed {
				t.Errorf("its duplicate got %q, replayed %v, %v", name, replayed, err)
			}
		})
	}
}

// undoing is a Runner like a store's Atomic: it undoes the transaction of the first run
// because another one has committed the key meanwhile, and its repeat finds that outcome.
type undoing struct{ *semel.Guard }

func (u undoing) Run(ctx context.Context, c semel.Call, fn semel.Handler) (semel.Result, error) {
	scratch, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		return semel.Result{}, err
	}
	_, _ = scratch.Run(ctx, c, fn)
	if _, err := u.Guard.Run(ctx, c, func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
		msg, err := named(ctx, 99)
		return encode(msg), err
	}); err != nil {
		return semel.Result{}, err
	}
	return u.Guard.Run(ctx, c, fn)
}

func TestUnary_RunIsUndone_AnswerIsTheCommittedOne(t *testing.T) {
	guard, err := semel.New(memstore.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	var effects atomic.Int32
	client := serveRunner(t, undoing{guard}, Options{}, &effects, named)
	if name, replayed, err := send(t.Context(), client, "k", 1); err != nil || name != "effect 99" || !replayed {
		t.Errorf("got %q, replayed %v, %v; want effect 99 as a replay", name, replayed, err)
	}
}
