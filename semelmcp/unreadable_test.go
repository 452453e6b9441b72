package semelmcp

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/semel-go/semel"
)

// fragile is an output whose methods for JSON panic if its ID says so.
type fragile struct {
	ID string `json:"id"`
}

type plainFragile fragile

func (f fragile) MarshalJSON() ([]byte, error) {
	if f.ID == "encode" {
		panic("no encoding")
	}
	return json.Marshal(plainFragile(f))
}

func (f *fragile) UnmarshalJSON(b []byte) error {
	err := json.Unmarshal(b, (*plainFragile)(f))
	if f.ID == "decode" {
		panic("no decoding")
	}
	return err
}

// The tool has had its effect, so a result that cannot be encoded or decoded must not leave
// the call in doubt: the tool would run again.
func TestTool_ResultPanicsWhenEncodedOrDecoded_RunsOnce(t *testing.T) {
	for _, id := range []string{"encode", "decode"} {
		for name, failed := range map[string]error{"a result": nil, "a failure": semel.Final(errors.New("no money"))} {
			t.Run(id+" "+name, func(t *testing.T) {
				effects := 0
				once, err := Tool(guardOf(t, nil, nil), Options{Tenant: Shared, Key: FromMeta("key")},
					func(context.Context, *mcp.CallToolRequest, payment) (*mcp.CallToolResult, fragile, error) {
						effects++
						if failed == nil {
							return nil, fragile{id}, nil
						}
						res := &mcp.CallToolResult{}
						res.SetError(failed)
						return res, fragile{id}, nil
					})
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "pay", Meta: mcp.Meta{"key": "k"}}}
					_, _, err := once(t.Context(), req, payment{})
					r, refused := errors.AsType[*refusal](err)
					_, isFailure := errors.AsType[*semel.Failure](err)
					if kept := failed != nil && id == "encode"; kept && !isFailure || !kept && (!refused || r.code != "RESULT_NOT_KEPT") {
						t.Errorf("the call got %v", err)
					}
				}
				if effects != 1 {
					t.Errorf("%d effects", effects)
				}
			})
		}
	}
}

// A client that could send the key of Hash would get the result of another call.
func TestKeySource_KeyInTheFormOfHash_IsRefused(t *testing.T) {
	arguments := json.RawMessage(`{"cents":1}`)
	hashed, err := Hash()(&mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Arguments: arguments}})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{hashed, hashPrefix, hashPrefix + "x"} {
		sent, err := json.Marshal(map[string]string{"key": key})
		if err != nil {
			t.Fatal(err)
		}
		req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Arguments: sent, Meta: mcp.Meta{"key": key}}}
		for name, source := range map[string]KeySource{"FromArgument": FromArgument("key"), "FromMeta": FromMeta("key")} {
			if got, err := First(source, Hash())(req); err == nil || errors.Is(err, ErrNoKey) {
				t.Errorf("%s takes the key %q, error %v", name, got, err)
			}
		}
	}
}
