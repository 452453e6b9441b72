package semelmcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/store"
)

const (
	replayMark = "semel/replayed"
	// codec names the encoding of kept results: the JSON of a kept.
	codec = "mcp-tool"
)

// unkept is the error of a run whose answer is not kept. Its caller gets the answer as
// it is.
type unkept struct {
	cause error
	sent  error // the handler's error; nil: it returned a result
}

func (u *unkept) Error() string { return u.cause.Error() }
func (u *unkept) Unwrap() error { return u.cause }

var (
	errNeedsInput = errors.New("the tool needs input")
	errToolError  = errors.New("the result has IsError, and no error")
)

// judge returns the error of a semel.Handler for the return values of a tool's handler.
// Nil: the result is kept.
func judge(res *mcp.CallToolResult, out any, err error) error {
	cause := driver.ReadableError(err)
	sent := cause
	if cause == nil && res != nil {
		switch {
		case res.InputRequests != nil:
			cause = semel.NoEffect(errNeedsInput)
		case res.IsError && res.GetError() == nil:
			cause = errToolError
		case res.IsError:
			cause = driver.ReadableError(res.GetError())
		}
	}
	if cause == nil {
		return nil
	}
	if driver.IsNoEffect(cause) {
		return semel.NoEffect(&unkept{cause, sent})
	}
	if f, ok := errors.AsType[*semel.Failure](cause); ok && f != nil {
		if sent == nil {
			return failureOf(f, res, out)
		}
		return f
	}
	return &unkept{cause, sent}
}

// answer returns the answer for the caller of the run: the return values of the handler,
// and the advice.
func (u *unkept) answer(res *mcp.CallToolResult, advice string) (*mcp.CallToolResult, error) {
	switch wire, isWire := errors.AsType[*jsonrpc.Error](u.sent); {
	case isWire:
		return nil, wire
	case u.sent != nil:
		return nil, &advisedError{u.sent, advice}
	case res.InputRequests != nil:
		return res, nil
	}
	advised := *res
	advised.Content = append(slices.Clone(res.Content), &mcp.TextContent{Text: advice})
	return &advised, nil
}

// advisedError is an error of a handler with words about calling again.
type advisedError struct {
	error
	advice string
}

func (e *advisedError) Error() string { return e.error.Error() + "\n" + e.advice }
func (e *advisedError) Unwrap() error { return e.error }

// kept is what a handler returned.
type kept struct {
	Result any `json:"result"`
	Output any `json:"output"`
}

// Outcome keeps a result for a parked call: pass it to semel.Happened, in
// semel.Options.Reconcile or for Guard.Resolve. Duplicates get it as if the handler had
// returned res and out: out has the tool's output type, and is nil for a [RawTool] only. Of
// any other result, duplicates learn only that the call took effect.
func Outcome(res *mcp.CallToolResult, out any) store.Outcome { return encode(res, out) }

// encode keeps an answer. The handler has had its effect, so an answer that cannot be
// encoded, or whose methods panic, leaves a tombstone.
func encode(res *mcp.CallToolResult, out any) (o store.Outcome) {
	defer func() {
		if recover() != nil {
			o = store.Outcome{Gone: true}
		}
	}()
	body, err := json.Marshal(kept{res, out})
	if err != nil {
		return store.Outcome{Gone: true}
	}
	return store.Outcome{Body: body, Codec: codec}
}

// decode reads what encode wrote. A panic of a method of Out is an error.
func decode[Out any](body []byte) (_ *mcp.CallToolResult, out Out, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the decoding of a %T panicked: %v", out, p)
		}
	}()
	var (
		raw struct {
			Result, Output json.RawMessage
		}
		parts struct {
			Content           json.RawMessage
			StructuredContent json.RawMessage
		}
		res mcp.CallToolResult
	)
	err = json.Unmarshal(body, &raw)
	if err == nil && string(raw.Result) != "null" {
		err = errors.Join(json.Unmarshal(raw.Result, &res), json.Unmarshal(raw.Result, &parts))
	}
	if string(parts.Content) == "null" {
		res.Content = nil // the SDK then makes the content of the output
	}
	if parts.StructuredContent != nil {
		res.StructuredContent = parts.StructuredContent // with all digits of its numbers
	}
	if whole, ok := any(&out).(*any); ok && string(raw.Output) != "null" {
		*whole = raw.Output
	} else if err == nil && string(raw.Output) != "null" {
		err = json.Unmarshal(raw.Output, &out)
	}
	return &res, out, err
}

// failureOf keeps a result with IsError in the Data of the failure.
func failureOf(f *semel.Failure, res *mcp.CallToolResult, out any) error {
	o := encode(res, out)
	if o.Gone { // the code and the message are kept all the same
		return f
	}
	return &semel.Failure{Code: f.Code, Message: f.Message, Data: append([]byte(codec+" "), o.Body...)}
}

// keptResult finds what failureOf wrote. A failure that was too large has no Data.
func keptResult(f *semel.Failure) (body []byte, ok bool) {
	return bytes.CutPrefix(f.Data, []byte(codec+" "))
}
