package httpname

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestOverrides_EachHeader_InCapitals(t *testing.T) {
	for _, name := range OverrideHeaders() {
		h := http.Header{}
		h.Add(name, "patch")
		h.Add(name, "PUT")
		if got := Overrides(h); !slices.Equal(got, []string{"PATCH", "PUT"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := Overrides(http.Header{"X-Other": {"PUT"}}); got != nil {
		t.Errorf("no such header: %q", got)
	}
}

func TestIsToken_EachByte_IsLetterDigitOrSign(t *testing.T) {
	for c := range 256 {
		want := c > ' ' && c <= '~' && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, rune(c))
		if got := IsToken("a" + string([]byte{byte(c)})); got != want {
			t.Errorf("byte %#x: %v, want %v", c, got, want)
		}
	}
	if IsToken("") {
		t.Error("an empty name is a token")
	}
}

func TestCanonical_MixedCase_IsKeyOfHeader(t *testing.T) {
	if got := Canonical([]string{"x-user-ID", "IDEMPOTENCY-KEY"}); !slices.Equal(got, []string{"X-User-Id", "Idempotency-Key"}) {
		t.Errorf("%q", got)
	}
}
