package semelconnect

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/semel-go/semel"
)

// A reconciler and an operator find out what a method in doubt has answered.
func TestOutcome_OfParkedCall_DuplicateGetsResponse(t *testing.T) {
	for name, c := range map[string]struct {
		result any
		read   bool
	}{"an Outcome": {Outcome(wrapperspb.String("found")), true}, "nil": {Outcome(nil), false}, "a text": {"found", false}} {
		t.Run(name, func(t *testing.T) {
			var effects atomic.Int32
			client := serve(t, &semel.Options{OnDoubt: semel.Park, Reconcile: func(context.Context, *semel.Execution) (semel.Verdict, error) {
				return semel.Happened(c.result), nil
			}}, Options{}, &effects, func(context.Context, int32) (*text, error) {
				return nil, connect.NewError(connect.CodeInternal, errors.New("the answer of the bank was lost"))
			})
			if _, _, err := send(t.Context(), client, "k", 1); connect.CodeOf(err) != connect.CodeInternal {
				t.Errorf("the first request got %v", err)
			}
			response, replayed, err := send(t.Context(), client, "k", 1)
			if c.read && (response != "found" || !replayed || err != nil) {
				t.Errorf("the duplicate got %q, replayed %v, %v", response, replayed, err)
			}
			if !c.read && connect.CodeOf(err) != connect.CodeFailedPrecondition {
				t.Errorf("the duplicate got %q, %v", response, err)
			}
			if n := effects.Load(); n != 1 {
				t.Errorf("%d effects", n)
			}
		})
	}
}
