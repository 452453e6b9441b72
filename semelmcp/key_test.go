package semelmcp

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/semel-go/semel"
)

func TestKeySource_EachCall(t *testing.T) {
	id, all := FromArgument("id"), Hash()
	for name, c := range map[string]struct {
		source    KeySource
		arguments string
		meta      mcp.Meta
		key       string // "same": as of {"a":1,"b":[2,"x"]}; "": ErrNoKey; "invalid": another error
	}{
		"text":             {id, `{"id": "k"}`, nil, "k"},
		"escaped text":     {id, `{"id": "\u006b"}`, nil, "k"},
		"integer":          {id, `{"id": -9223372036854775809}`, nil, "-9223372036854775809"},
		"fraction":         {id, `{"id": 1.0}`, nil, "invalid"},
		"object":           {id, `{"id": {}}`, nil, "invalid"},
		"null":             {id, `{"id": null}`, nil, ""},
		"empty":            {id, `{"id": ""}`, nil, ""},
		"other case":       {id, `{"ID": "k"}`, nil, ""},
		"no arguments":     {id, ``, nil, ""},
		"no object":        {id, `[]`, nil, "invalid"},
		"meta":             {FromMeta("k"), ``, mcp.Meta{"k": "v"}, "v"},
		"no meta":          {FromMeta("k"), ``, nil, ""},
		"empty meta":       {FromMeta("k"), ``, mcp.Meta{"k": ""}, ""},
		"number in meta":   {FromMeta("k"), ``, mcp.Meta{"k": 1.0}, "invalid"},
		"hash, other form": {all, `{ "b":[2.0,"\u0078"], "a":1}`, nil, "same"},
		"hash, chosen":     {Hash("b", "a", "d"), `{"a":1,"b":[2,"x"],"c":3}`, nil, "same"},
		"hash, none":       {Hash("d"), `{"a":1}`, nil, ""},
		"hash, empty":      {Hash("d", "e"), `{"a":1,"d":"","e":null}`, nil, ""},
		"hash, no object":  {all, `1`, nil, "invalid"},
		"half surrogate":   {id, `{"id": "\ud800"}`, nil, "invalid"},
		"not UTF-8":        {id, "{\"id\": \"\xff\"}", nil, "invalid"},
		"meta, no Unicode": {FromMeta("k"), ``, mcp.Meta{"k": "\ufffd"}, "invalid"},
		"hash, no Unicode": {all, `{"a":[{"b":"\udfff"}]}`, nil, "invalid"},
		"hash, name":       {all, `{"\udfff":1}`, nil, "invalid"},
		"hash, pair":       {all, `{"b":[2e0,"\u0078"],"a":10e-1}`, nil, "same"},
		"first":            {First(id, FromMeta("k")), `{"id": "k"}`, mcp.Meta{"k": "v"}, "k"},
		"second":           {First(id, FromMeta("k")), `{}`, mcp.Meta{"k": "v"}, "v"},
		"first is invalid": {First(id, FromMeta("k")), `{"id": 0.5}`, mcp.Meta{"k": "v"}, "invalid"},
		"neither":          {First(id, FromMeta("k")), `{}`, nil, ""},
		"no source":        {First(), `{}`, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			request := func(arguments string) *mcp.CallToolRequest {
				return &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Arguments: []byte(arguments), Meta: c.meta}}
			}
			want := c.key
			if want == "same" {
				var err error
				if want, err = all(request(`{"a":1,"b":[2,"x"]}`)); err != nil {
					t.Fatal(err)
				}
			}
			key, err := c.source(request(c.arguments))
			switch want {
			case "":
				if !errors.Is(err, ErrNoKey) {
					t.Errorf("got %q, %v", key, err)
				}
			case "invalid":
				if err == nil || errors.Is(err, ErrNoKey) {
					t.Errorf("got %q, %v", key, err)
				}
			default:
				if key != want || err != nil {
					t.Errorf("got %q, %v, want %q", key, err, want)
				}
			}
		})
	}
	keys := map[string]string{}
	for _, arguments := range []string{`{}`, `{"a":null}`, `{"a":1}`, `{"a":"1"}`, `{"a":1,"b":1}`, `{"ab":1}`} {
		key, err := all(&mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Arguments: []byte(arguments)}})
		if err != nil || keys[key] != "" {
			t.Errorf("%s and %s have one key, %v", arguments, keys[key], err)
		}
		keys[key] = arguments
	}
}

func TestTool_KeyOfMetaOrDerived_RecognizesDuplicates(t *testing.T) {
	for name, c := range map[string]struct {
		key     KeySource
		first   mcp.CallToolParams
		again   mcp.CallToolParams
		another mcp.CallToolParams // of another operation
	}{
		"meta": {
			FromMeta("idempotencyKey"),
			mcp.CallToolParams{Meta: mcp.Meta{"idempotencyKey": "1"}}, mcp.CallToolParams{Meta: mcp.Meta{"idempotencyKey": "1"}},
			mcp.CallToolParams{Meta: mcp.Meta{"idempotencyKey": "2"}},
		},
		"all arguments": {
			Hash(), mcp.CallToolParams{Arguments: map[string]any{"cents": 1}}, mcp.CallToolParams{Arguments: map[string]any{"cents": 1}},
			mcp.CallToolParams{Arguments: map[string]any{"cents": 2}},
		},
	} {
		for _, tool := range tools {
			t.Run(name+", "+tool, func(t *testing.T) {
				b := &bank{answer: numbered}
				session := connect(t, serve(t, b, guardOf(t, nil, nil), Options{Key: c.key}))
				for i, p := range []mcp.CallToolParams{c.first, c.again, c.another} {
					p.Name = tool
					if p.Arguments == nil {
						p.Arguments = map[string]any{"cents": 1}
					}
					want := [...]string{"effect 1", "effect 1", "effect 2"}[i]
					if r := send(t.Context(), session, &p); !strings.Contains(r.output, want) || r.replayed != (i == 1) {
						t.Errorf("call %d got %+v", i+1, r)
					}
				}
			})
		}
	}
}

func TestTool_OwnPayloadAndOperation_AreUsed(t *testing.T) {
	b := &bank{answer: numbered}
	session := connect(t, serve(t, b, guardOf(t, nil, nil), Options{
		Operation: "payment",
		Payload:   func(*mcp.CallToolRequest) (semel.Payload, error) { return semel.NoPayload(), nil },
		Tenant:    func(context.Context, *mcp.CallToolRequest) (string, error) { return "ann", nil },
	}))
	for cents, tool := range []string{"pay", "pay", "pay-raw"} { // both tools are one operation
		if r := call(t.Context(), session, tool, paying("k", cents)); r.protocol != nil || r.replayed != (cents > 0) {
			t.Errorf("call %d got %+v", cents+1, r)
		}
	}
	if n := b.effects.Load(); n != 1 {
		t.Errorf("%d effects", n)
	}
}
