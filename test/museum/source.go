package museum

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// source is a Go file of the repository.
type source struct {
	path   string // absolute
	text   string
	parsed *ast.File
	tokens []word
}

// word is a token of Go and its place in the text. Comments, and the semicolons
// that the end of a line stands for, are no words.
type word struct {
	kind       token.Token
	text       string
	start, end int
}

// edit is a seeded bug in its file: text replaces source.text[start:end].
type edit struct {
	*source
	start, end int
	text       string
}

// mutated is the whole file with the bug.
func (e *edit) mutated() string { return e.source.text[:e.start] + e.text + e.source.text[e.end:] }

// trimmed is the same change without the text that it leaves as it is.
func trimmed(e *edit) *edit {
	old, text := e.source.text[e.start:e.end], e.text
	head, tail := 0, 0
	for head < min(len(old), len(text)) && old[head] == text[head] {
		head++
	}
	for tail < min(len(old), len(text))-head && old[len(old)-1-tail] == text[len(text)-1-tail] {
		tail++
	}
	return &edit{e.source, e.start + head, e.end - tail, text[head : len(text)-tail]}
}

// tree reads the packages of the repository, each once.
type tree struct {
	root     string
	packages map[string][]*source
}

func newTree(root string) *tree { return &tree{root: root, packages: map[string][]*source{}} }

// sources are the files of a package on this machine, without its tests.
func (t *tree) sources(dir string) ([]*source, error) {
	if files, ok := t.packages[dir]; ok {
		return files, nil
	}
	path := filepath.Join(t.root, filepath.FromSlash(dir))
	pkg, err := build.ImportDir(path, 0)
	if err != nil {
		return nil, err
	}
	var files []*source
	for _, name := range pkg.GoFiles {
		s, err := readSource(filepath.Join(path, name))
		if err != nil {
			return nil, err
		}
		files = append(files, s)
	}
	t.packages[dir] = files
	return files, nil
}

func readSource(path string) (*source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{path, string(text), parsed, words(string(text))}, nil
}

// offset is the place of pos in the text of the file.
func (s *source) offset(pos token.Pos) int { return int(pos - s.parsed.FileStart) }

// locate finds the one place of the bug.
func (t *tree) locate(m *Mutant) (*edit, error) {
	files, err := t.sources(m.Dir)
	if err != nil {
		return nil, err
	}
	var edits []edit
	declared := 0
	for _, s := range files {
		if decl := s.declaration(m.Func); decl != nil {
			declared++
			edits = append(edits, s.matches(m, s.offset(decl.Pos()), s.offset(decl.End()))...)
		}
	}
	switch {
	case declared != 1:
		return nil, fmt.Errorf("%s declares %s %d times, not once; if the code has moved, correct Dir and Func", m.Dir, m.Func, declared)
	case len(edits) != 1:
		return nil, fmt.Errorf("the Old text occurs %d times in %s of %s, not once; if the code has changed, correct Old and New: %q", len(edits), m.Func, m.Dir, m.Old)
	}
	return trimmed(&edits[0]), nil
}

// declaration is the top-level declaration with that name, or nil: "settle",
// "(*Guard).settle", "Key.valid", "const limit", "var limits", "type Key".
func (s *source) declaration(name string) ast.Node {
	for _, d := range s.parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if funcName(d) == name {
				return d
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				for _, n := range specNames(spec) {
					if d.Tok.String()+" "+n.Name == name {
						return spec
					}
				}
			}
		}
	}
	return nil
}

func specNames(spec ast.Spec) []*ast.Ident {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		return spec.Names
	case *ast.TypeSpec:
		return []*ast.Ident{spec.Name}
	}
	return nil
}

// funcName is the name as a stack trace has it, without type parameters.
func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver, star := f.Recv.List[0].Type, false
	for {
		switch x := receiver.(type) {
		case *ast.StarExpr:
			receiver, star = x.X, true
		case *ast.IndexExpr:
			receiver = x.X
		case *ast.IndexListExpr:
			receiver = x.X
		case *ast.Ident:
			if star {
				return "(*" + x.Name + ")." + f.Name.Name
			}
			return x.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// matches are the places of Old between from and to: the same words of Go, or,
// if there are none, a part of a string literal, in which any white space
// equals any other.
func (s *source) matches(m *Mutant, from, to int) []edit {
	var within []word
	for _, w := range s.tokens {
		if from <= w.start && w.end <= to {
			within = append(within, w)
		}
	}
	var edits []edit
	replacement := strings.TrimSpace(m.New)
	old := words(m.Old)
	for i := 0; len(old) > 0 && i+len(old) <= len(within); i++ {
		if sameWords(within[i:i+len(old)], old) {
			edits = append(edits, edit{s, within[i].start, within[i+len(old)-1].end, replacement})
		}
	}
	if len(edits) > 0 || strings.TrimSpace(m.Old) == "" {
		return edits
	}
	part := regexp.MustCompile(literalPattern(m.Old))
	for _, w := range within {
		if w.kind == token.STRING {
			for _, at := range part.FindAllStringIndex(w.text, -1) {
				edits = append(edits, edit{s, w.start + at[0], w.start + at[1], replacement})
			}
		}
	}
	return edits
}

func literalPattern(old string) string {
	fields := strings.Fields(old)
	for i, f := range fields {
		fields[i] = regexp.QuoteMeta(f)
	}
	return strings.Join(fields, `\s+`)
}

func sameWords(a, b []word) bool {
	for i := range b {
		if a[i].kind != b[i].kind || a[i].text != b[i].text {
			return false
		}
	}
	return true
}

func words(text string) []word {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var sc scanner.Scanner
	sc.Init(file, []byte(text), func(token.Position, string) {}, 0) // a fragment may end within a literal
	var found []word
	for {
		pos, kind, literal := sc.Scan()
		switch {
		case kind == token.EOF:
			return found
		case kind == token.SEMICOLON && literal == "\n":
			continue
		case literal == "":
			literal = kind.String()
		}
		start := file.Offset(pos)
		found = append(found, word{kind, literal, start, start + len(literal)})
	}
}
