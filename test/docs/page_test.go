package docs

import (
	"maps"
	"slices"
	"testing"
)

const sample = "# Semel, once\n" +
	"text [a](b.md)\n" +
	"```go\n" +
	"func f() {\n" +
	"\t# no heading\n" +
	"}\n" +
	"```\n" +
	"## Twice\n" +
	"## Twice\n" +
	"  ```sh\n" +
	"  semel doctor\n" +
	"  ```\n"

func TestPage_Parsed_ProseBlocksAndLinks(t *testing.T) {
	p, err := newPage("x.md", sample)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.blocks) != 2 || p.blocks[0].lang != "go" || p.blocks[0].line != 4 || len(p.blocks[0].lines) != 3 || p.blocks[1].lang != "sh" {
		t.Errorf("blocks %+v", p.blocks)
	}
	if got := slices.Sorted(maps.Keys(p.anchors())); !slices.Equal(got, []string{"semel-once", "twice", "twice-1"}) {
		t.Errorf("anchors %q", got)
	}
	if _, err := newPage("x.md", "```go\nfunc"); err == nil {
		t.Error("a block that is never closed is no error")
	}
}

func TestPage_IndentedBlock_Found(t *testing.T) {
	source := "package x\n\nfunc f() {\n\tif a {\n\t\tb()\n\t}\n}\n"
	for block, want := range map[string]bool{
		"if a {\n    b()\n}": true,
		"b()":                true,
		"if a {\nc()\n}":     false,
		"if a {\n}":          false,
		"b() // more":        false,
	} {
		if got := holds(flat(source), flat(block)); got != want {
			t.Errorf("%q: found %v", block, got)
		}
	}
}

func TestPage_Links_Found(t *testing.T) {
	got := linksOf("[a](b.md) `[no](code)` ![i](c.png \"title\") (h)(i) <img src=\"d.svg\">")
	if !slices.Equal(got, []string{"b.md", "c.png", "d.svg"}) {
		t.Errorf("links %q", got)
	}
	if got := linksOf("[e]: f.md#g"); !slices.Equal(got, []string{"f.md#g"}) {
		t.Errorf("links %q", got)
	}
}

func TestPage_CommandLines_Found(t *testing.T) {
	for line, want := range map[string]string{
		"go run ./cmd/semel verify --list": "verify",
		"go run ./cmd/semel/demo --events": "",
		"$ semel inspect list":             "inspect",
		"semel proxy \\":                   "proxy",
		"SEMEL_STORE=x semel doctor":       "doctor",
		"semel --help":                     "",
		"semelhttp":                        "",
		"echo semel proxy":                 "",
	} {
		if got := verbOf(line); got != want {
			t.Errorf("%q: verb %q, want %q", line, got, want)
		}
	}
	if !offers("Commands:\n  proxy [flags]\n    sits in front\n\n  inspect list\n", "inspect") || offers("  proxy   runs the demo", "demo") {
		t.Error("the verbs of the help are misread")
	}
}
