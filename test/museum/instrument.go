package museum

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The environment variable that switches one seeded bug on, by its number. 0 or
// no number: the code behaves as it stands in the repository.
const switchVariable = "SEMEL_SEEDED_BUG"

// switchFile is added to each package that has bugs.
const switchFile = `package %s

import (
	seededOS "os"
	seededConv "strconv"
)

var seededBug, _ = seededConv.Atoi(seededOS.Getenv("` + switchVariable + `"))

func seededText(bug int, with, without string) string {
	if seededBug == bug {
		return with
	}
	return without
}
`

// instrumented is the text of s with all the bugs in it. A function begins with
// its bugs: if one of them is switched on, it runs a copy of its body that has
// the bug. A string literal outside functions becomes a choice of literals, and
// its constant a variable. The compiler reports an error of bug 7 in the file
// seeded-bug-7.
func (s *source) instrumented(bugs map[int]*edit) string {
	copies := map[int]string{}   // of bodies, by the place after the opening brace
	choices := map[word]string{} // of literals
	constants := map[*ast.ValueSpec]*ast.GenDecl{}
	for _, id := range slices.Sorted(maps.Keys(bugs)) {
		e := bugs[id]
		if f := e.function(); f != nil {
			copies[s.offset(f.Body.Lbrace)+1] += s.bodyCopy(id, f, e)
			continue
		}
		decl, spec := e.value()
		w := e.literal()
		if choices[w] == "" {
			choices[w] = w.text
		}
		choices[w] = fmt.Sprintf("seededText(%d, %s%s%s, %s)", id, s.text[w.start:e.start], e.text, s.text[e.end:w.end], choices[w])
		if decl.Tok == token.CONST {
			constants[spec] = decl
		}
	}
	var changes []edit
	for at, text := range copies {
		line := 1 + strings.Count(s.text[:at], "\n")
		column := at - strings.LastIndexByte(s.text[:at], '\n')
		changes = append(changes, edit{s, at, at, fmt.Sprintf("%s/*line %s:%d:%d*/", text, filepath.Base(s.path), line, column)})
	}
	for w, text := range choices {
		changes = append(changes, edit{s, w.start, w.end, text})
	}
	for spec, decl := range constants {
		at := s.offset(decl.Pos())
		if decl.Lparen.IsValid() { // the group goes on after the variable
			start, end := s.offset(spec.Pos()), s.offset(spec.End())
			changes = append(changes, edit{s, start, start, ")\nvar "}, edit{s, end, end, "\nconst ("})
		} else {
			changes = append(changes, edit{s, at, at + len("const"), "var"})
		}
	}
	slices.SortFunc(changes, func(a, b edit) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	var b strings.Builder
	done := 0
	for _, c := range changes {
		b.WriteString(s.text[done:c.start] + c.text)
		done = c.end
	}
	b.WriteString(s.text[done:])
	return b.String()
}

// bodyCopy is the statement that runs the body of f with a bug, if it is
// switched on. The copy is a closure, which sees the arguments of f.
func (s *source) bodyCopy(id int, f *ast.FuncDecl, e *edit) string {
	open, end := s.offset(f.Body.Pos()), s.offset(f.Body.End())
	results := s.text[s.offset(f.Type.Params.End()):open]
	call := fmt.Sprintf("/*line seeded-bug-%d:1:1*/func()%s%s%s%s()", id, results, s.text[open:e.start], e.text, s.text[e.end:end])
	if f.Type.Results != nil {
		return fmt.Sprintf("if seededBug == %d { return %s };", id, call)
	}
	return fmt.Sprintf("if seededBug == %d { %s; return };", id, call)
}

// switchable reports whether the bug can stand beside others: in the body of a
// function that does not recover, which a copy of its body cannot do in its
// place, or in a string literal of a variable or a constant.
func (e *edit) switchable() bool {
	if f := e.function(); f != nil {
		return !calls(f.Body, "recover")
	}
	decl, _ := e.value()
	return decl != nil && e.literal().kind == token.STRING && !(decl.Tok == token.CONST && mentions(decl, "iota"))
}

// function is the function whose body contains the bug, or nil.
func (e *edit) function() *ast.FuncDecl {
	for _, d := range e.parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && e.offset(f.Body.Pos()) < e.start && e.end < e.offset(f.Body.End()) {
			return f
		}
	}
	return nil
}

// value is the declaration of variables or constants that contains the bug, or
// nil.
func (e *edit) value() (*ast.GenDecl, *ast.ValueSpec) {
	for _, d := range e.parsed.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range g.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if ok && e.offset(v.Pos()) <= e.start && e.end <= e.offset(v.End()) {
				return g, v
			}
		}
	}
	return nil, nil
}

// literal is the word within which the bug lies, if it is one.
func (e *edit) literal() word {
	for _, w := range e.tokens {
		if w.start < e.start && e.end < w.end {
			return w
		}
	}
	return word{}
}

// calls reports whether the body itself calls the function, and not a function
// literal in it.
func calls(body ast.Node, function string) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			id, ok := n.Fun.(*ast.Ident)
			found = found || ok && id.Name == function
		case *ast.FuncLit:
			return false
		}
		return true
	})
	return found
}

func mentions(in ast.Node, name string) (found bool) {
	ast.Inspect(in, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && id.Name == name
		return true
	})
	return found
}

// An overlay is the directory of the files that replace those of the
// repository in a build.
type overlay struct {
	dir     string
	replace map[string]string // path in the repository: path in dir
}

func newOverlay(dir string) *overlay { return &overlay{dir, map[string]string{}} }

func (o *overlay) add(path, text string) error {
	if o.replace[path] == "" {
		o.replace[path] = filepath.Join(o.dir, strconv.Itoa(len(o.replace))+".go")
	}
	return os.WriteFile(o.replace[path], []byte(text), 0o600)
}

// addAll adds each file that has bugs, and the switch.
func (o *overlay) addAll(bugs map[int]*edit) error {
	byFile := map[*source]map[int]*edit{}
	for id, e := range bugs {
		if byFile[e.source] == nil {
			byFile[e.source] = map[int]*edit{}
		}
		byFile[e.source][id] = e
	}
	for s, some := range byFile {
		if err := o.add(s.path, s.instrumented(some)); err != nil {
			return err
		}
		toggle := filepath.Join(filepath.Dir(s.path), "seeded_bug_switch.go")
		if err := o.add(toggle, fmt.Sprintf(switchFile, s.parsed.Name.Name)); err != nil {
			return err
		}
	}
	return nil
}

// file is the argument of go build -overlay.
func (o *overlay) file() (string, error) {
	doc, err := json.Marshal(map[string]any{"Replace": o.replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(o.dir, "overlay.json")
	return name, os.WriteFile(name, doc, 0o600)
}

var bugFile = regexp.MustCompile(`seeded-bug-(\d+):`)

// blamed are the bugs in which the compiler found errors.
func blamed(output string) []int {
	var ids []int
	for _, found := range bugFile.FindAllStringSubmatch(output, -1) {
		id, _ := strconv.Atoi(found[1])
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
