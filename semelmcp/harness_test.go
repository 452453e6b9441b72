package semelmcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/memstore"
)

type payment struct {
	Key   string `json:"idempotency_key,omitempty"`
	Cents int    `json:"cents"`
}

type receipt struct {
	ID string `json:"id"`
}

// bank counts its effects, and answers as answer says.
type bank struct {
	effects atomic.Int32
	answer  func(ctx context.Context, n int32) (*mcp.CallToolResult, receipt, error)
}

func numbered(_ context.Context, n int32) (*mcp.CallToolResult, receipt, error) {
	return nil, receipt{fmt.Sprint("effect ", n)}, nil
}

func guardOf(t *testing.T, s store.Store, o *semel.Options) *semel.Guard {
	t.Helper()
	if s == nil {
		s = memstore.New(nil)
	}
	g, err := semel.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// serve makes a server with the tools "pay", which is typed, and "pay-raw".
func serve(t *testing.T, b *bank, run semel.Runner, o Options) *mcp.Server {
	t.Helper()
	if o.Tenant == nil {
		o.Tenant = Shared
	}
	if o.Key == nil {
		o.Key = FromArgument("idempotency_key")
	}
	typed, err := Tool(run, o, func(ctx context.Context, _ *mcp.CallToolRequest, _ payment) (*mcp.CallToolResult, receipt, error) {
		return b.answer(ctx, b.effects.Add(1))
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := RawTool(run, o, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		res, out, err := b.answer(ctx, b.effects.Add(1))
		if err == nil && res == nil {
			res = &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: out.ID}}, StructuredContent: out}
		}
		return res, err
	})
	if err != nil {
		t.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "pay"}, typed)
	server.AddTool(&mcp.Tool{Name: "pay-raw", InputSchema: json.RawMessage(`{"type": "object"}`)}, raw)
	return server
}

// tools are the names of the tools of serve.
var tools = []string{"pay", "pay-raw"}

// connect starts a session in memory.
func connect(t *testing.T, server *mcp.Server) *mcp.ClientSession {
	t.Helper()
	near, far := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), far, nil); err != nil {
		t.Fatal(err)
	}
	return connectOver(t, near)
}

func connectOver(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	accept := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: accept})
	session, err := client.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// account is a round tripper that names the account in a header.
type account string

func (a account) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Account", string(a))
	return http.DefaultTransport.RoundTrip(r)
}

// accountOf is the Tenant of a server that serves over HTTP.
func accountOf(_ context.Context, req *mcp.CallToolRequest) (string, error) {
	if req.Extra == nil {
		return "", errors.New("no request of HTTP")
	}
	return req.Extra.Header.Get("X-Account"), nil
}

// listen serves over HTTP on a free port, and returns how to start a session for an account.
func listen(t *testing.T, server *mcp.Server) func(*testing.T, account) *mcp.ClientSession {
	t.Helper()
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(h.Close)
	return func(t *testing.T, a account) *mcp.ClientSession {
		t.Helper()
		return connectOver(t, &mcp.StreamableClientTransport{Endpoint: h.URL, HTTPClient: &http.Client{Transport: a}})
	}
}

// reply is what an agent sees of a call.
type reply struct {
	text     string // all texts of the content
	output   string // the structured content
	isError  bool
	replayed bool
	protocol error // a protocol error
}

func call(ctx context.Context, s *mcp.ClientSession, tool string, arguments any) reply {
	return send(ctx, s, &mcp.CallToolParams{Name: tool, Arguments: arguments})
}

func send(ctx context.Context, s *mcp.ClientSession, p *mcp.CallToolParams) reply {
	res, err := s.CallTool(ctx, p)
	if err != nil {
		return reply{protocol: err}
	}
	r := reply{isError: res.IsError, replayed: res.Meta["semel/replayed"] == true}
	var texts []string
	for _, c := range res.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, c.Text)
		}
	}
	r.text = strings.Join(texts, "|")
	if res.StructuredContent != nil {
		output, err := json.Marshal(res.StructuredContent)
		if err != nil {
			return reply{protocol: err}
		}
		r.output = string(output)
	}
	return r
}

func paying(key string, cents int) map[string]any {
	return map[string]any{"idempotency_key": key, "cents": cents}
}

// wantRefusal checks that an agent is told the code and the words.
func wantRefusal(t *testing.T, r reply, code string, words ...string) {
	t.Helper()
	if !r.isError || r.protocol != nil || !strings.HasPrefix(r.text, code+": ") {
		t.Errorf("got %+v, want %s", r, code)
	}
	for _, w := range words {
		if !strings.Contains(r.text, w) {
			t.Errorf("the agent is not told %q: %s", w, r.text)
		}
	}
}
