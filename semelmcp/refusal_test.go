package semelmcp

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

func TestTool_Refused_SaysWhatToDoAndHasNoEffect(t *testing.T) {
	for _, tool := range tools {
		t.Run(tool, func(t *testing.T) {
			b := &bank{answer: numbered}
			start := listen(t, serve(t, b, guardOf(t, nil, nil), Options{Tenant: accountOf}))
			ann := start(t, "ann")
			nothing := "Nothing was done"
			wantRefusal(t, call(t.Context(), ann, tool, map[string]any{"cents": 1}), "KEY_MISSING", nothing, `argument "idempotency_key"`, "new UUID")
			wantRefusal(t, call(t.Context(), ann, tool, paying("", 1)), "KEY_MISSING", nothing)
			wantRefusal(t, call(t.Context(), ann, tool, paying(strings.Repeat("k", 256), 1)), "CALL_INVALID", nothing, "256 bytes")
			wantRefusal(t, call(t.Context(), start(t, ""), tool, paying("k", 1)), "TENANT_MISSING", nothing)
			if n := b.effects.Load(); n != 0 {
				t.Errorf("%d effects", n)
			}
			if r := call(t.Context(), ann, tool, paying("k", 1)); r.isError {
				t.Errorf("got %+v", r)
			}
			wantRefusal(t, call(t.Context(), ann, tool, paying("k", 2)), "PAYLOAD_MISMATCH", nothing+" now", "exactly its arguments")
			if r := call(t.Context(), start(t, "bob"), tool, paying("k", 2)); r.output != `{"id":"effect 2"}` {
				t.Errorf("another account with the same key got %+v", r)
			}
			if other := tools[1-strings.Count(tool, "raw")]; other != tool {
				if r := call(t.Context(), ann, other, paying("k", 1)); r.output != `{"id":"effect 3"}` {
					t.Errorf("another tool with the same key got %+v", r)
				}
			}
		})
	}
}

func TestTool_InProgress_TellsWhenToCallAgain(t *testing.T) {
	started, end := make(chan struct{}), make(chan struct{})
	b := &bank{answer: func(ctx context.Context, n int32) (*mcp.CallToolResult, receipt, error) {
		close(started)
		<-end
		return numbered(ctx, n)
	}}
	session := connect(t, serve(t, b, guardOf(t, nil, nil), Options{}))
	var wg sync.WaitGroup
	wg.Go(func() { call(t.Context(), session, "pay", paying("k", 1)) })
	<-started
	r := call(t.Context(), session, "pay", paying("k", 1))
	wantRefusal(t, r, "IN_PROGRESS", "with the same idempotency key and the same arguments after ", noNewKey)
	if strings.Contains(r.text, "after 30 s") {
		t.Errorf("a duplicate of a run of some milliseconds is told the lease: %s", r.text)
	}
	close(end)
	wg.Wait()
}

func TestTool_ResultTooLarge_ReplaySaysThatItHappened(t *testing.T) {
	b := &bank{answer: func(context.Context, int32) (*mcp.CallToolResult, receipt, error) {
		return nil, receipt{strings.Repeat("x", 2000)}, nil
	}}
	session := connect(t, serve(t, b, guardOf(t, nil, &semel.Options{MaxOutcome: 1000}), Options{}))
	if r := call(t.Context(), session, "pay", paying("k", 1)); r.isError || len(r.output) < 2000 {
		t.Errorf("the first answer is %+v", r)
	}
	wantRefusal(t, call(t.Context(), session, "pay", paying("k", 1)), "RESULT_NOT_KEPT", "took effect", "Do not repeat it")
}

// broken is a store that does not answer.
type broken struct{ store.Store }

func (broken) Claim(context.Context, store.Proposal) (store.Found, error) {
	return store.Found{}, errors.New("secret address of the store")
}

func TestTool_StoreDown_TellsToKeepTheKey(t *testing.T) {
	b := &bank{answer: numbered}
	session := connect(t, serve(t, b, guardOf(t, broken{memstore.New(nil)}, &semel.Options{StoreTimeout: 10_000_000}), Options{}))
	r := call(t.Context(), session, "pay", paying("k", 1))
	wantRefusal(t, r, "STORE_UNAVAILABLE", asBefore, noNewKey)
	if strings.Contains(r.text, "secret") || b.effects.Load() != 0 {
		t.Errorf("%d effects; the agent is told %s", b.effects.Load(), r.text)
	}
}

func TestTool_TenantCannotBeFound_SaysWhy(t *testing.T) {
	for cause, code := range map[error]string{semel.ErrUnavailable: "STORE_UNAVAILABLE", errors.New("secret"): "TENANT_MISSING"} {
		b := &bank{answer: numbered}
		session := connect(t, serve(t, b, guardOf(t, nil, nil), Options{
			Tenant: func(context.Context, *mcp.CallToolRequest) (string, error) { return "", cause },
		}))
		r := call(t.Context(), session, "pay", paying("k", 1))
		wantRefusal(t, r, code)
		if strings.Contains(r.text, "secret") || b.effects.Load() != 0 {
			t.Errorf("%d effects; the agent is told %s", b.effects.Load(), r.text)
		}
	}
}

// A nil pointer in an error must not end the server's process.
func TestTool_KeyErrorIsNilPointer_CallIsInvalid(t *testing.T) {
	session := connect(t, serve(t, &bank{answer: numbered}, guardOf(t, nil, nil), Options{
		Key: func(*mcp.CallToolRequest) (string, error) { return "", (*nilPointerError)(nil) },
	}))
	wantRefusal(t, call(t.Context(), session, "pay", paying("k", 1)), "CALL_INVALID")
}

type nilPointerError struct{ text string }

func (e *nilPointerError) Error() string { return e.text }

func TestTool_Refused_MiddlewareFindsReason(t *testing.T) {
	b := &bank{answer: func(context.Context, int32) (*mcp.CallToolResult, receipt, error) {
		return nil, receipt{}, errors.New("no")
	}}
	server := serve(t, b, guardOf(t, nil, &semel.Options{OnDoubt: semel.Park}), Options{})
	var got error
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			if tool, ok := res.(*mcp.CallToolResult); ok {
				got = tool.GetError()
			}
			return res, err
		}
	})
	session := connect(t, server)
	for range 2 {
		call(t.Context(), session, "pay", paying("k", 1))
	}
	if !errors.Is(got, semel.ErrParked) {
		t.Errorf("the middleware found %v", got)
	}
}

func TestTool_RunnerOfAnotherKind_IsProtocolError(t *testing.T) {
	b := &bank{answer: numbered}
	session := connect(t, serve(t, b, strange{}, Options{}))
	for _, tool := range tools {
		if r := call(t.Context(), session, tool, paying("k", 1)); r.protocol == nil || strings.Contains(r.protocol.Error(), "secret") {
			t.Errorf("got %+v", r)
		}
	}
}

// strange is a runner whose errors nobody knows.
type strange struct{}

func (strange) Run(context.Context, semel.Call, semel.Handler) (semel.Result, error) {
	return semel.Result{}, errors.New("secret")
}

func TestTool_Options_ErrorNamesEachFault(t *testing.T) {
	_, err := Tool[payment, receipt](nil, Options{Operation: "a#b"}, nil)
	_, rawErr := RawTool(nil, Options{Operation: "a#b"}, nil)
	for _, want := range []string{"run: is nil", "handler is nil", "Options.Tenant", "Options.Key", "Options.Operation"} {
		if err == nil || !strings.Contains(err.Error(), want) || rawErr == nil || rawErr.Error() != err.Error() {
			t.Errorf("the errors do not name %s: %v; %v", want, err, rawErr)
		}
	}
}

// A repeat does not mend a record, so the agent is not told to call again.
func TestRefusalOf_RecordUnreadable_SaysNotToRepeat(t *testing.T) {
	err := refusalOf(t.Context(), "pay", &semel.Error{Reason: store.ErrCorrupt, Cause: errors.New("secret")})
	r, ok := err.(*refusal)
	if !ok || r.code != "RECORD_UNREADABLE" || !strings.Contains(r.text, noNewKey) || strings.Contains(r.text, asBefore) || strings.Contains(r.text, "secret") {
		t.Errorf("%v", err)
	}
}
