package semelgrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// A repeat does not mend a record, so there is no RetryInfo.
func TestRefusalOf_RecordUnreadable_FailedPrecondition(t *testing.T) {
	s := status.Convert(refusalOf(t.Context(), unaryCall, &semel.Error{Reason: store.ErrCorrupt, Cause: errors.New("secret")}))
	info, ok := s.Details()[0].(*errdetails.ErrorInfo)
	if s.Code() != codes.FailedPrecondition || len(s.Details()) != 1 || !ok || info.Reason != "RECORD_UNREADABLE" || strings.Contains(s.Message(), "secret") {
		t.Errorf("%v, details %v", s, s.Details())
	}
}

// A client that is told that it is not authenticated logs its user out, and does not come again.
func TestUnary_TenantCannotBeFound_OutageIsUnavailable(t *testing.T) {
	for _, c := range []struct {
		err    error
		code   codes.Code
		reason string
		retry  bool
	}{
		{fmt.Errorf("secret: %w", semel.ErrUnavailable), codes.Unavailable, "STORE_UNAVAILABLE", true},
		{errors.New("secret"), codes.Unauthenticated, "TENANT_MISSING", false},
		{(*nilPointerError)(nil), codes.Unauthenticated, "TENANT_MISSING", false},
	} {
		s := &service{answer: named}
		tenant := func(context.Context) (string, error) { return "", c.err }
		_, _, err := send(withKey(t.Context(), "k"), serve(t, s, guardOf(t, nil), Options{Tenant: tenant}), 1)
		wantRefusal(t, err, c.code, c.reason, c.retry)
		if strings.Contains(err.Error(), "secret") || s.effects.Load() != 0 {
			t.Errorf("%d effects; the client is told %v", s.effects.Load(), err)
		}
	}
}

type nilPointerError struct{ text string }

func (e *nilPointerError) Error() string { return e.text }
func (e *nilPointerError) Unwrap() error { return errors.New(e.text) }

// A method passes on the refusal of another Semel. When that one has a result, its caller
// gets it.
func TestUnary_MethodReturnsRefusalOfAnotherSemel_IsNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		reason error // of a semel.Error; nil: a semel.Failure
		parks  bool
		kept   bool
	}{
		"record unreadable": {reason: store.ErrCorrupt},
		"mismatch":          {reason: semel.ErrMismatch},
		"in progress":       {reason: semel.ErrInProgress},
		"outcome unknown":   {reason: semel.ErrParked, parks: true},
		"result not kept":   {reason: semel.ErrNotKept, kept: true},
		"failed":            {kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			var inner error = &semel.Failure{Message: "declined"}
			if c.reason != nil {
				inner = &semel.Error{Reason: c.reason}
			}
			s := &service{answer: func(ctx context.Context, _ int32) (*grpc_testing.SimpleResponse, error) {
				return nil, refusalOf(ctx, "inner", inner)
			}}
			client := serve(t, s, guardOf(t, &semel.Options{OnDoubt: semel.Park}), Options{})
			_, _, first := send(withKey(t.Context(), "k"), client, 1)
			if want := refusalOf(t.Context(), "inner", inner); status.Code(first) != status.Code(want) || status.Convert(first).Message() != status.Convert(want).Message() {
				t.Errorf("the first answer is %v, want %v", first, want)
			}
			_, replayed, err := send(withKey(t.Context(), "k"), client, 1)
			runs := int32(2)
			if c.kept || c.parks {
				runs = 1
			}
			if n := s.effects.Load(); n != runs || replayed != c.kept {
				t.Errorf("ran %d times, replayed %v; want %d, %v", n, replayed, runs, c.kept)
			}
			if c.parks {
				wantRefusal(t, err, codes.FailedPrecondition, "OUTCOME_UNKNOWN", false)
			}
		})
	}
}
