package museum

import (
	"encoding/json"
	"fmt"
	"go/ast"
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
`

// instrumented is the text of s with all the bugs in it. Each function begins
// with its bugs: if one of them is switched on, the function runs a copy of its
// body that has the bug. The compiler reports an error of bug 7 in the file
// seeded-bug-7.
func (s *source) instrumented(bugs map[int]*edit) string {
	inserts := map[int]string{} // by the place after the opening brace
	for _, id := range slices.Sorted(maps.Keys(bugs)) {
		e := bugs[id]
		f := s.function(e.start, e.end)
		open, end := s.offset(f.Body.Pos()), s.offset(f.Body.End())
		results := s.text[s.offset(f.Type.Params.End()):open]
		call := fmt.Sprintf("/*line seeded-bug-%d:1:1*/func()%s%s%s%s()", id, results, s.text[open:e.start], e.text, s.text[e.end:end])
		if f.Type.Results != nil {
			call = "return " + call
		} else {
			call += "; return"
		}
		inserts[open+1] += fmt.Sprintf("if seededBug == %d { %s };", id, call)
	}
	var b strings.Builder
	done := 0
	for _, at := range slices.Sorted(maps.Keys(inserts)) {
		line := 1 + strings.Count(s.text[:at], "\n")
		column := at - strings.LastIndexByte(s.text[:at], '\n')
		fmt.Fprintf(&b, "%s%s/*line %s:%d:%d*/", s.text[done:at], inserts[at], filepath.Base(s.path), line, column)
		done = at
	}
	b.WriteString(s.text[done:])
	return b.String()
}

// function is the function whose body contains the text from start to end, or
// nil.
func (s *source) function(start, end int) *ast.FuncDecl {
	for _, d := range s.parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && s.offset(f.Body.Pos()) < start && end < s.offset(f.Body.End()) {
			return f
		}
	}
	return nil
}

// switchable reports whether the bug can stand beside others: it lies in the
// body of one function, and that function does not recover, which a copy of its
// body cannot do in its place.
func (e *edit) switchable() bool {
	f := e.function(e.start, e.end)
	if f == nil {
		return false
	}
	recovers := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "recover" {
				recovers = true
			}
		}
		return true
	})
	return !recovers
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
