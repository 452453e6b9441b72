package semelgrpc

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/semel-go/semel"
)

// A reconciler and an operator find out what a method in doubt has answered.
func TestOutcome_OfParkedCall_DuplicateGetsResponse(t *testing.T) {
	found := &grpc_testing.SimpleResponse{Username: "found"}
	for name, c := range map[string]struct {
		result any
		read   bool
	}{"an Outcome": {Outcome(found), true}, "nil": {Outcome(nil), false}, "a message": {found, false}} {
		t.Run(name, func(t *testing.T) {
			s := &service{answer: func(context.Context, int32) (*grpc_testing.SimpleResponse, error) {
				return nil, status.Error(codes.Internal, "the answer of the bank was lost")
			}}
			client := serve(t, s, guardOf(t, &semel.Options{OnDoubt: semel.Park, Reconcile: func(context.Context, *semel.Execution) (semel.Verdict, error) {
				return semel.Happened(c.result), nil
			}}), Options{})
			_, _, err := send(withKey(t.Context(), "k"), client, 1)
			wantRefusal(t, err, codes.Internal, "", false)
			response, replayed, err := send(withKey(t.Context(), "k"), client, 1)
			if c.read && (response != "found" || !replayed || err != nil) {
				t.Errorf("the duplicate got %q, replayed %v, %v", response, replayed, err)
			}
			if !c.read {
				wantRefusal(t, err, codes.FailedPrecondition, "RESULT_NOT_KEPT", false)
			}
			if n := s.effects.Load(); n != 1 {
				t.Errorf("%d effects", n)
			}
		})
	}
}
