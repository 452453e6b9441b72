package semelmcp

import (
	"context"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/semel-go/semel"
)

// A reconciler and an operator find out what a call in doubt has answered.
func TestOutcome_OfParkedCall_DuplicateGetsResult(t *testing.T) {
	raw := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found"}}, StructuredContent: receipt{"found"}}
	for name, c := range map[string]struct {
		tool   string
		result any
		read   bool
	}{
		"an Outcome of an output":                 {"pay", Outcome(nil, receipt{"found"}), true},
		"an Outcome of a result":                  {"pay-raw", Outcome(raw, nil), true},
		"an output":                               {"pay", receipt{"found"}, false},
		"an Outcome of a result without encoding": {"pay-raw", Outcome(nil, func() {}), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bank{answer: func(context.Context, int32) (*mcp.CallToolResult, receipt, error) {
				return nil, receipt{}, errors.New("the answer of the bank was lost")
			}}
			session := connect(t, serve(t, b, guardOf(t, nil, &semel.Options{OnDoubt: semel.Park, Reconcile: func(context.Context, *semel.Execution) (semel.Verdict, error) {
				return semel.Happened(c.result), nil
			}}), Options{}))
			if r := call(t.Context(), session, c.tool, paying("k", 1)); !r.isError {
				t.Errorf("the first call got %+v", r)
			}
			r := call(t.Context(), session, c.tool, paying("k", 1))
			if c.read && (r.isError || r.output != `{"id":"found"}` || !r.replayed) {
				t.Errorf("the duplicate got %+v", r)
			}
			if !c.read {
				wantRefusal(t, r, "RESULT_NOT_KEPT", "took effect")
			}
			if n := b.effects.Load(); n != 1 {
				t.Errorf("%d effects", n)
			}
		})
	}
}
