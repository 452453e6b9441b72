package helper

import "testing"

func TestRelease_OfABuild_IsItsVersionOrLatest(t *testing.T) {
	for version, want := range map[string]string{
		"(devel)": "latest", "v1.2.3": "v1.2.3", "v1.2.3-rc.1": "v1.2.3-rc.1", "v0.0.0-20261125-abc+dirty": "latest", "": "latest",
		"v0.0.0-20261128073200-0ba536c5c2b2": "latest", "v0.1.1-0.20261128073200-0ba536c5c2b2": "latest",
	} {
		if got := release(version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}
