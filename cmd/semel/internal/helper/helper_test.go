package helper

import "testing"

func TestRelease_OfABuild_IsItsVersionOrLatest(t *testing.T) {
	for version, want := range map[string]string{"(devel)": "latest", "v1.2.3": "v1.2.3", "v0.0.0-20261125-abc+dirty": "latest", "": "latest"} {
		if got := release(version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}
