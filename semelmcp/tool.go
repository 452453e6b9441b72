package semelmcp

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Tool wraps the handler of a typed tool, for mcp.AddTool, so that it runs once for each
// key. run is a *semel.Guard or a store's Atomic. The error names everything that is
// wrong with the arguments. The handler is safe for concurrent use if h is.
func Tool[In, Out any](run semel.Runner, o Options, h mcp.ToolHandlerFor[In, Out]) (mcp.ToolHandlerFor[In, Out], error) {
	if err := o.check(run, h != nil); err != nil {
		return nil, err
	}
	return func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		return once(ctx, run, &o, req, func(ctx context.Context) (*mcp.CallToolResult, Out, error) { return h(ctx, req, in) })
	}, nil
}

// RawTool is Tool for a handler of Server.AddTool. As with mcp.AddTool, an error of the
// handler that is not a *jsonrpc.Error becomes a result with IsError.
func RawTool(run semel.Runner, o Options, h mcp.ToolHandler) (mcp.ToolHandler, error) {
	if err := o.check(run, h != nil); err != nil {
		return nil, err
	}
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		res, _, err := once(ctx, run, &o, req, func(ctx context.Context) (*mcp.CallToolResult, any, error) {
			res, err := h(ctx, req)
			return res, nil, err
		})
		if err == nil {
			return res, nil
		}
		if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
			return nil, wire
		}
		res = &mcp.CallToolResult{}
		res.SetError(err)
		return res, nil
	}, nil
}

// once runs a call. The error is for the agent: a refusal, an error of the handler, or a
// protocol error.
func once[Out any](ctx context.Context, run semel.Runner, o *Options, req *mcp.CallToolRequest,
	h func(context.Context) (*mcp.CallToolResult, Out, error),
) (res *mcp.CallToolResult, out Out, err error) {
	call, err := o.call(ctx, req)
	if err != nil {
		return nil, out, err
	}
	var own struct {
		policy semel.Policy
		res    *mcp.CallToolResult
		out    Out
	}
	kept, err := run.Run(ctx, call, func(ctx context.Context, x *semel.Execution) (store.Outcome, error) {
		own.policy = x.Policy()
		var err error
		own.res, own.out, err = h(ctx)
		if err := judge(own.res, own.out, err); err != nil {
			return store.Outcome{}, err
		}
		return encode(own.res, own.out), nil
	})
	if u, ok := errors.AsType[*unkept](err); ok {
		res, err = u.answer(own.res, adviceAfter(err, u, own.policy))
		return res, own.out, err
	}
	body := kept.Body
	if f, ok := errors.AsType[*semel.Failure](err); ok {
		if body, ok = keptResult(f); !ok {
			return nil, out, f
		}
	} else if err != nil && !errors.Is(err, semel.ErrOutcomeNotStored) { // with it, the result is valid
		return nil, out, refusalOf(ctx, call.Operation, err)
	} else if kept.Gone || kept.Codec != codec {
		return nil, out, refusalOf(ctx, call.Operation, &semel.Error{Reason: semel.ErrNotKept, Operation: call.Operation})
	}
	if res, out, err = decode[Out](body); err != nil {
		return nil, out, refusalOf(ctx, call.Operation, &semel.Error{Reason: semel.ErrNotKept, Operation: call.Operation, Cause: err})
	}
	if kept.Replayed {
		if res.Meta == nil {
			res.Meta = mcp.Meta{}
		}
		res.Meta[replayMark] = true
	}
	return res, out, nil
}
