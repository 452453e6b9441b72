package semelmcp

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Two orders whose IDs a double cannot tell apart are two operations.
func TestHash_Numbers_KeyIsExact(t *testing.T) {
	source := Hash("order")
	key := func(number string) string {
		k, err := source(&mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Arguments: []byte(`{"order":{"ids":[` + number + `]}}`)}})
		if err != nil {
			t.Errorf("%s: %v", number, err)
		}
		return k
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"1", "1.0", true},
		{"0.5", "5e-1", true},
		{"0", "0.000", true},
		{"9007199254740992", "9007199254740993", false},
		{"-9007199254740992", "-9007199254740993", false},
		{"12345678901234567.89", "12345678901234567.90", false},
		{"1e-400", "1e-401", false},
		{"1e-400", "0", false},
		{"1e400", "1e401", false},
	} {
		if a, b := key(c.a), key(c.b); (a == b) != c.same {
			t.Errorf("%s and %s have the keys %s and %s, want the same: %v", c.a, c.b, a, b, c.same)
		}
	}
	// A key must not change with a new version.
	if got, want := key("9007199254740991"), "arguments:61f71216f7b25b40290c361ed0f648d1e61b61f82c47896aff3a3dc479ec7ee4"; got != want {
		t.Errorf("the key is %s, want %s", got, want)
	}
}
