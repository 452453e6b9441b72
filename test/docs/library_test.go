package docs

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/pagetest"
	"github.com/semel-go/semel/test/internal/repo"
)

// optionsType is a type of options of a public package.
type optionsType struct {
	dir, pkg, name, doc string
	fields              []optionsField
}

type optionsField struct{ name, kind, doc string }

// publicOptions are the exported structs of public packages whose names end with
// "Options", and saga.Definition, in the order of their packages.
func publicOptions(t *testing.T) (all []optionsType) {
	t.Helper()
	files, err := repo.Files(".go")
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		f := &files[i]
		if dir := f.Dir(); f.IsTest() || strings.Contains(dir+"/", "internal/") || strings.HasSuffix(dir, "test") || slices.Contains([]string{"cmd", "test", "examples", "scripts"}, strings.Split(dir, "/")[0]) {
			continue
		}
		if !strings.Contains(f.Text, "Options struct {") && !strings.Contains(f.Text, "] struct {") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name, f.Text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				all = append(all, optionsOf(g, f.Dir(), parsed.Name.Name)...)
			}
		}
	}
	slices.SortFunc(all, func(a, b optionsType) int {
		return strings.Compare(strings.TrimPrefix(a.dir, ".")+" "+a.name, strings.TrimPrefix(b.dir, ".")+" "+b.name)
	})
	return all
}

func optionsOf(g *ast.GenDecl, dir, pkg string) (all []optionsType) {
	for _, s := range g.Specs {
		spec, ok := s.(*ast.TypeSpec)
		if !ok || !spec.Name.IsExported() || !strings.HasSuffix(spec.Name.Name, "Options") && spec.Name.Name != "Definition" {
			continue
		}
		body, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		o := optionsType{dir: dir, pkg: pkg, name: spec.Name.Name, doc: g.Doc.Text() + spec.Doc.Text()}
		for _, field := range body.Fields.List {
			var names []string
			for _, n := range field.Names {
				if n.IsExported() {
					names = append(names, n.Name)
				}
			}
			if len(names) > 0 {
				o.fields = append(o.fields, optionsField{strings.Join(names, ", "), typeText(field.Type), field.Doc.Text() + field.Comment.Text()})
			}
		}
		if len(o.fields) > 0 {
			all = append(all, o)
		}
	}
	return all
}

// typeText is a type in one line; of a function only that it is one, because its comment
// names the parameters that matter.
func typeText(e ast.Expr) string {
	if _, ok := e.(*ast.FuncType); ok {
		return "func"
	}
	var b strings.Builder
	if err := format.Node(&b, token.NewFileSet(), e); err != nil {
		return err.Error()
	}
	return b.String()
}

// words are the rest of a sentence; a dot inside a name does not end it.
const words = `((?:[^.;]|\.["\w])+)`

var defaults = []*regexp.Regexp{
	regexp.MustCompile(`^\w+ (?:is|are) ([A-Z]\S*|\S+\(\)) by default\b`),
	regexp.MustCompile(`("[^"]*") by default\b`),
	regexp.MustCompile(`(?:^|[:.(] )((?:[^:.()]|\.\w)*?(?:\([^)]*\))?),? by default\b`),
	regexp.MustCompile(`\b(?:Nil|nil|Zero|Empty)(?:,? (?:and|or) [\w ]+)?(?: means|:) ` + words),
	regexp.MustCompile(`[Tt]he defaults? (?:is|are) ` + words),
	regexp.MustCompile(`\b(?:[Bb]y default|Default:) ` + words),
	regexp.MustCompile(`(\S+)(?:, the default:| \(the default\))`),
}

// defaultOf is the default that a comment names, or "".
func defaultOf(doc string) string {
	text := strings.Join(strings.Fields(doc), " ")
	for _, re := range defaults {
		if m := re.FindStringSubmatch(text); m != nil {
			return strings.TrimSpace(m[1])
		}
	}
	return ""
}

var goCode = regexp.MustCompile(`\[([A-Za-z][A-Za-z0-9_.]*)\]`)

// comment is the text of a Go comment as a cell.
func comment(doc string) string {
	text := goCode.ReplaceAllString(pagetest.Cell(doc), "`$1`")
	return strings.NewReplacer("<", `\<`, "*", `\*`).Replace(text)
}

func TestReference_Library_IsWhatTheCommentsSay(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Options of the Go packages

<!-- Made from the code by "make docs". Change the comments in the code, and not this page. -->

Nil and zero options mean the defaults, unless a comment says otherwise. The first column of
each table has the field, the last the comment of the code.

`)
	all := publicOptions(t)
	for _, o := range all {
		fmt.Fprintf(&b, "- [`%s.%s`](#%s)\n", o.pkg, o.name, slug(o.pkg+"."+o.name))
	}
	for _, o := range all {
		doc := path.Join("github.com/semel-go/semel", o.dir)
		fmt.Fprintf(&b, "\n## `%s.%s`\n\n%s Package [`%s`](https://pkg.go.dev/%s).\n\n| field | type | default | meaning |\n|---|---|---|---|\n", o.pkg, o.name, comment(o.doc), doc, doc)
		for _, f := range o.fields {
			def := comment(defaultOf(f.doc))
			if f.kind == "bool" {
				def = "false"
			}
			fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", f.name, pagetest.Cell(f.kind), def, comment(f.doc))
		}
	}
	pagetest.Check(t, "docs/reference/library.md", b.String())
	if len(all) < 20 {
		t.Errorf("only %d types of options were found", len(all))
	}
}

func TestDefaultOf_Comments(t *testing.T) {
	for doc, want := range map[string]string{
		"Lease is how long a claim holds: 30 s by default, at least 10 ms.": "30 s",
		"Nil: only JSON.":                         "only JSON",
		"MaxAttempts is a limit. Zero: no limit.": "no limit",
		"OnDoubt is Retry by default.":            "Retry",
		"The default is\nRetention, and so on.":   "Retention, and so on",
		"Sends it again.":                         "",
	} {
		if got := defaultOf(doc); got != want {
			t.Errorf("%q: %q, want %q", doc, got, want)
		}
	}
}
