package semelconnect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// A client that is told that it is not authenticated logs its user out, and does not come again.
func TestUnary_TenantCannotBeFound_OutageIsUnavailable(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   connect.Code
		reason string
	}{
		{fmt.Errorf("secret: %w", semel.ErrUnavailable), connect.CodeUnavailable, "store_unavailable"},
		{errors.New("secret"), connect.CodeUnauthenticated, "tenant_missing"},
		{(*nilPointerError)(nil), connect.CodeUnauthenticated, "tenant_missing"},
	} {
		var effects atomic.Int32
		tenant := func(context.Context, connect.AnyRequest) (string, error) { return "", c.err }
		_, _, err := send(t.Context(), serve(t, nil, Options{Tenant: tenant}, &effects, named), "k", 1)
		e, ok := errors.AsType[*connect.Error](err)
		if !ok || e.Code() != c.code || e.Meta().Get("Semel-Refusal") != c.reason || strings.Contains(err.Error(), "secret") || effects.Load() != 0 {
			t.Errorf("got %v after %d effects; want %v, %s", err, effects.Load(), c.code, c.reason)
		}
	}
}

type nilPointerError struct{ text string }

func (e *nilPointerError) Error() string { return e.text }
func (e *nilPointerError) Unwrap() error { return errors.New(e.text) }

// A method passes on the refusal of another Semel, which it got as a client. When that one
// has a result, its caller gets it.
func TestUnary_MethodReturnsRefusalOfAnotherSemel_IsNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		reason error // of a semel.Error; nil: a semel.Failure
		runs   int32
		kept   bool
	}{
		"record_unreadable": {reason: store.ErrCorrupt, runs: 2},
		"payload_mismatch":  {reason: semel.ErrMismatch, runs: 2},
		"in_progress":       {reason: semel.ErrInProgress, runs: 2},
		"outcome_unknown":   {reason: semel.ErrParked, runs: 1},
		"result not kept":   {reason: semel.ErrNotKept, runs: 1, kept: true},
		"failed":            {runs: 1, kept: true},
	} {
		for protocol, option := range map[string]connect.ClientOption{"connect": connect.WithHTTPGet(), "grpc": connect.WithGRPC(), "grpc-web": connect.WithGRPCWeb()} {
			t.Run(name+", "+protocol, func(t *testing.T) {
				var refused, effects atomic.Int32
				inner := serve(t, nil, Options{}, &refused, func(ctx context.Context, _ int32) (*text, error) {
					if c.reason == nil {
						return nil, errorOf(&semel.Failure{Message: "declined"}, false)
					}
					return nil, refusalOf(ctx, "inner", &semel.Error{Reason: c.reason})
				}, option)
				outer := serve(t, &semel.Options{OnDoubt: semel.Park}, Options{}, &effects, func(ctx context.Context, _ int32) (*text, error) {
					_, _, err := send(ctx, inner, "", 1)
					return nil, err
				}, option)
				for i := range 2 {
					_, replayed, err := send(t.Context(), outer, "k", 1)
					e, ok := errors.AsType[*connect.Error](err)
					if !ok || replayed != (c.kept && i == 1) {
						t.Fatalf("call %d: %v, replayed %v", i+1, err, replayed)
					}
					if code := e.Meta().Get("Semel-Refusal"); c.kept != (code == "") || !c.kept && code != name {
						t.Errorf("call %d: the code is %q", i+1, code)
					}
				}
				if n := effects.Load(); n != c.runs {
					t.Errorf("the method ran %d times, want %d", n, c.runs)
				}
			})
		}
	}
}
