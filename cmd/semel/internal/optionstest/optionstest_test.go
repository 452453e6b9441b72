package optionstest

import (
	"strings"
	"testing"
)

func TestSplitDefault_HelpTexts(t *testing.T) {
	for help, want := range map[string]struct {
		def     string
		isValue bool
		rest    string
	}{
		"Address (default 127.0.0.1:8080), or unix:PATH.":      {"127.0.0.1:8080", true, "Address, or unix:PATH."},
		"A pause (default 60s; 0: for ever). More.":            {"60s", true, "A pause (0: for ever). More."},
		"A count (default 0: no limit).":                       {"0", true, "A count (0: no limit)."},
		"A time (default 0: deleted at once). More.":           {"0", true, "A time (0: deleted at once). More."},
		"A size (default 64MiB, at least max-body; 0: none).":  {"64MiB", true, "A size (at least max-body; 0: none)."},
		"retry (default; a repeat goes up) or park (nothing).": {"retry", true, "retry (default; a repeat goes up) or park (nothing)."},
		"debug, info (default), warn.":                         {"info", true, "debug, info (default), warn."},
		"The authorities (default: the system's).":             {"the system's", false, "The authorities."},
		"Headers (default: Host and others; see there).":       {"Host and others", false, "Headers (see there)."},
		"Required to be set.":                                  {"", false, "Required to be set."},
	} {
		if def, isValue, rest := splitDefault(help); def != want.def || isValue != want.isValue || rest != want.rest {
			t.Errorf("%q: %q, %v, %q", help, def, isValue, rest)
		}
	}
}

func TestDetail_Help_IsMarkdown(t *testing.T) {
	var b strings.Builder
	WriteDetail(&b, "Text of --store and <k>.\n\nExamples:\n\n    semel x\n    semel y\n\nWHOSE KEYS (--scope)\n\n    a  b\n", 3)
	want := "Text of `--store` and \\<k>.\n\nExamples:\n\n```sh\nsemel x\nsemel y\n```\n\n### Whose keys (`--scope`)\n\n```text\na  b\n```\n\n"
	if b.String() != want {
		t.Errorf("%q", b.String())
	}
}
