package semelmcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/memstore"
)

func TestTool_EightDuplicates_OneEffectAndOneAnswer(t *testing.T) {
	for _, tool := range tools {
		for _, transport := range []string{"memory", "HTTP"} {
			t.Run(tool+" over "+transport, func(t *testing.T) {
				b := &bank{answer: numbered}
				server := serve(t, b, guardOf(t, nil, nil), Options{Wait: time.Minute})
				start := func(t *testing.T, _ account) *mcp.ClientSession { return connect(t, server) }
				if transport == "HTTP" {
					start = listen(t, server)
				}
				var (
					wg       sync.WaitGroup
					replies  [8]reply
					replayed int
				)
				for i := range replies {
					session := start(t, "ann")
					wg.Go(func() { replies[i] = call(t.Context(), session, tool, paying("k", 1)) })
				}
				wg.Wait()
				for _, r := range replies {
					if r.isError || r.protocol != nil || r.output != `{"id":"effect 1"}` || !strings.Contains(r.text, "effect 1") || r.text != replies[0].text {
						t.Errorf("got %+v", r)
					}
					if r.replayed {
						replayed++
					}
				}
				if n := b.effects.Load(); n != 1 || replayed != 7 {
					t.Errorf("%d effects and %d replays, want 1 and 7", n, replayed)
				}
			})
		}
	}
}

// failed makes a result with IsError, and err if that is not nil.
func failed(err error) *mcp.CallToolResult {
	r := &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no"}, &mcp.TextContent{Text: "more"}}}
	if err != nil {
		r.SetError(err)
	}
	return r
}

func TestTool_EachAnswer_FollowsTheTable(t *testing.T) {
	no := errors.New("no")
	wire := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "no"}
	for name, c := range map[string]struct {
		res  *mcp.CallToolResult
		err  error
		want string
	}{
		"final error":               {nil, semel.Final(no), "kept"},
		"result with final error":   {failed(semel.Final(no)), nil, "kept"},
		"final protocol error":      {nil, semel.Final(wire), "kept"},
		"no effect":                 {nil, semel.NoEffect(no), "free"},
		"result without effect":     {failed(semel.NoEffect(no)), nil, "free"},
		"protocol, no effect":       {nil, semel.NoEffect(wire), "free"},
		"plain error":               {nil, no, "doubt"},
		"ended context":             {nil, context.DeadlineExceeded, "doubt"},
		"result with IsError":       {failed(nil), nil, "doubt"},
		"result with a plain error": {failed(no), nil, "doubt"},
		"protocol error":            {nil, wire, "doubt"},
	} {
		for _, tool := range tools {
			for _, policy := range []semel.Policy{semel.Retry, semel.Park} {
				t.Run(fmt.Sprintf("%s, %s, %v", name, tool, policy), func(t *testing.T) {
					b := &bank{answer: func(context.Context, int32) (*mcp.CallToolResult, receipt, error) { return c.res, receipt{}, c.err }}
					session := connect(t, serve(t, b, guardOf(t, nil, &semel.Options{OnDoubt: policy}), Options{}))
					first := call(t.Context(), session, tool, paying("k", 1))
					second := call(t.Context(), session, tool, paying("k", 1))
					isWire := c.err != nil && !errors.Is(c.err, no) && strings.Contains(name, "protocol") && c.want != "kept"
					if isWire != (first.protocol != nil) || first.isError == isWire {
						t.Errorf("the first answer is %+v", first)
					}
					effects := b.effects.Load()
					switch {
					case c.want == "kept":
						mark := second.replayed
						second.replayed = false
						if effects != 1 || second != first || mark != (c.res != nil) || strings.Contains(first.text, "again") {
							t.Errorf("%d effects; got %+v, then %+v", effects, first, second)
						}
					case c.want == "doubt" && policy == semel.Park:
						wantRefusal(t, second, "OUTCOME_UNKNOWN", "not known", "Do not repeat it with a new idempotency key", "Tell a person")
						if effects != 1 || !isWire && !strings.Contains(first.text, "OUTCOME_UNKNOWN: "+parked) {
							t.Errorf("%d effects; the first answer is %+v", effects, first)
						}
					case effects != 2:
						t.Errorf("%d effects, want 2", effects)
					case isWire:
					case !strings.Contains(first.text, asBefore), strings.Contains(first.text, "Nothing was done") != (c.want == "free"):
						t.Errorf("the advice is wrong: %s", first.text)
					}
				})
			}
		}
	}
}

func TestTool_LastAttempt_IsToldAndKept(t *testing.T) {
	b := &bank{answer: func(context.Context, int32) (*mcp.CallToolResult, receipt, error) {
		return nil, receipt{}, errors.New("no")
	}}
	session := connect(t, serve(t, b, guardOf(t, nil, &semel.Options{MaxAttempts: 1}), Options{}))
	if r := call(t.Context(), session, "pay", paying("k", 1)); !strings.Contains(r.text, "This was the last attempt") {
		t.Errorf("the first answer is %+v", r)
	}
	if r := call(t.Context(), session, "pay", paying("k", 1)); !r.isError || !strings.Contains(r.text, "all 1 attempts failed") || b.effects.Load() != 1 {
		t.Errorf("%d effects; the second answer is %+v", b.effects.Load(), r)
	}
}

func TestTool_NeedsInput_KeyStaysFree(t *testing.T) {
	b := &bank{}
	b.answer = func(ctx context.Context, n int32) (*mcp.CallToolResult, receipt, error) {
		if n == 1 {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"ok": &mcp.ElicitParams{Message: "Is that right?"}}}, receipt{}, nil
		}
		return numbered(ctx, n)
	}
	session := connect(t, serve(t, b, guardOf(t, nil, &semel.Options{OnDoubt: semel.Park}), Options{}))
	for _, replayed := range []bool{false, true} {
		if r := call(t.Context(), session, "pay", paying("k", 1)); r.output != `{"id":"effect 2"}` || r.replayed != replayed {
			t.Errorf("got %+v", r)
		}
	}
}

func TestTool_ArgumentsDoNotFit_KeyStaysFree(t *testing.T) {
	b := &bank{answer: numbered}
	session := connect(t, serve(t, b, guardOf(t, nil, &semel.Options{OnDoubt: semel.Park}), Options{}))
	if r := call(t.Context(), session, "pay", map[string]any{"idempotency_key": "k", "cents": "many"}); !r.isError {
		t.Errorf("got %+v", r)
	}
	if r := call(t.Context(), session, "pay", paying("k", 1)); r.output != `{"id":"effect 1"}` {
		t.Errorf("the corrected call got %+v", r)
	}
}

func TestTool_Panic_IsInDoubt(t *testing.T) {
	b := &bank{answer: func(context.Context, int32) (*mcp.CallToolResult, receipt, error) { panic("ouch") }}
	server := serve(t, b, guardOf(t, nil, &semel.Options{OnDoubt: semel.Park}), Options{})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v", p)
				}
			}()
			return next(ctx, method, req)
		}
	})
	session := connect(t, server)
	if r := call(t.Context(), session, "pay", paying("k", 1)); r.protocol == nil || !strings.Contains(r.protocol.Error(), "panic: ouch") {
		t.Errorf("the middleware did not get the panic: %+v", r)
	}
	wantRefusal(t, call(t.Context(), session, "pay", paying("k", 1)), "OUTCOME_UNKNOWN")
}

func TestTool_CallerLeavesWhileToolRuns_DuplicateGetsAnswer(t *testing.T) {
	started := make(chan struct{})
	b := &bank{answer: func(ctx context.Context, n int32) (*mcp.CallToolResult, receipt, error) {
		close(started)
		<-ctx.Done()
		return numbered(ctx, n) // the effect happened, although nobody waits for it
	}}
	start := listen(t, serve(t, b, guardOf(t, nil, nil), Options{Wait: time.Minute}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if r := call(ctx, start(t, "ann"), "pay", paying("k", 1)); r.protocol == nil {
		t.Errorf("the caller that left got %+v", r)
	}
	if r := call(t.Context(), start(t, "ann"), "pay", paying("k", 1)); r.output != `{"id":"effect 1"}` || !r.replayed {
		t.Errorf("got %+v", r)
	}
}

// TestTool_Result_FirstAndReplayAreEqual has results whose form could change when they
// are encoded.
func TestTool_Result_FirstAndReplayAreEqual(t *testing.T) {
	for name, c := range map[string]struct {
		res          *mcp.CallToolResult
		text, output string
	}{
		"only output":        {nil, `{"id":"9"}`, `{"id":"9"}`},
		"no content":         {&mcp.CallToolResult{}, `{"id":"9"}`, `{"id":"9"}`},
		"empty content":      {&mcp.CallToolResult{Content: []mcp.Content{}}, "", `{"id":"9"}`},
		"content and output": {&mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "paid"}}}, "paid", `{"id":"9"}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bank{answer: func(context.Context, int32) (*mcp.CallToolResult, receipt, error) { return c.res, receipt{"9"}, nil }}
			session := connect(t, serve(t, b, guardOf(t, nil, nil), Options{}))
			for range 2 {
				if r := call(t.Context(), session, "pay", paying("k", 1)); r.text != c.text || r.output != c.output {
					t.Errorf("got %+v", r)
				}
			}
		})
	}
	whole := map[string]any{"id": uint64(1<<63 + 1)} // a double cannot hold it
	res, _, err := decode[any](encode(&mcp.CallToolResult{StructuredContent: whole}, nil).Body)
	if got := fmt.Sprintf("%s", res.StructuredContent); err != nil || got != `{"id":9223372036854775809}` {
		t.Errorf("the structured content is %s, %v", got, err)
	}
	_, out, err := decode[any](encode(nil, whole).Body)
	if got := fmt.Sprintf("%s", out); err != nil || got != `{"id":9223372036854775809}` {
		t.Errorf("the output is %s, %v", got, err)
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
	if _, err := u.Guard.Run(ctx, c, fn); err != nil {
		return semel.Result{}, err
	}
	return u.Guard.Run(ctx, c, fn)
}

func TestTool_RunIsUndone_AnswerIsTheCommittedOne(t *testing.T) {
	s := connect(t, serve(t, &bank{answer: numbered}, undoing{guardOf(t, nil, nil)}, Options{}))
	if got := call(t.Context(), s, "pay", paying("k", 1)); !strings.Contains(got.output, "effect 2") || !got.replayed {
		t.Errorf("got %+v; want effect 2 as a replay", got)
	}
}
