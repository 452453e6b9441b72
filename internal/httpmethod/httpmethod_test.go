package httpmethod

import (
	"net/http"
	"slices"
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
