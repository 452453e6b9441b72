package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/semel-go/semel/cmd/semel/internal/input"
)

// maxFile is far beyond any file a person writes.
const maxFile = 1 << 20

// Source is a file that was read, and where each of its fields stands.
type Source struct {
	File  File
	name  string
	lines map[string]int // "lease", "rules[0].match" → line
	empty []string       // fields without a value, such as "trusted-gateways:" alone
}

// ReadFile reads and parses a file. A mistake in its content is an input.Error
// that names the line.
func ReadFile(path string) (*Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &input.Error{Field: "--config", Value: path, Want: input.Unreadable(err, "")}
	}
	defer func() { _ = f.Close() }() // nothing was written
	doc, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, &input.Error{Field: "--config", Value: path, Want: input.Unreadable(err, "")}
	}
	if len(doc) > maxFile {
		return nil, &input.Error{Field: "--config", Value: path, Want: fmt.Sprintf("has more than %d bytes, which is the most", maxFile)}
	}
	return Parse(path, doc)
}

// Parse parses a document; name is for messages.
func Parse(name string, doc []byte) (*Source, error) {
	s := &Source{name: name, lines: map[string]int{}}
	var root yaml.Node
	if err := yaml.Unmarshal(doc, &root); err != nil {
		return nil, s.mistakes(err)
	}
	for _, n := range root.Content {
		s.index("", n, 0)
	}
	d := yaml.NewDecoder(bytes.NewReader(doc))
	d.KnownFields(true)
	if err := d.Decode(&s.File); err != nil && !errors.Is(err, io.EOF) {
		return nil, s.mistakes(err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, &input.Error{Field: name, Want: "has more than one document; put everything into the first"}
	}
	return s, s.withoutValue()
}

// withoutValue returns an error for each field without a value. It would count as not set,
// and most people who write a field do not mean its default.
func (s *Source) withoutValue() error {
	var errs []error
	for _, field := range s.empty {
		errs = append(errs, &input.Error{Field: s.at(field), Want: "has no value; give it one, or remove the line"})
	}
	return errors.Join(errs...)
}

// index records the line of each field.
func (s *Source) index(path string, n *yaml.Node, depth int) {
	if depth > 8 { // deeper than any valid file
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			field := n.Content[i].Value
			if path != "" {
				field = path + "." + field
			}
			s.lines[field] = n.Content[i].Line
			if n.Content[i+1].Tag == "!!null" && field != "rules" { // without rules, all follow the top level
				s.empty = append(s.empty, field)
			}
			s.index(field, n.Content[i+1], depth+1)
		}
	case yaml.SequenceNode:
		for i, e := range n.Content {
			field := fmt.Sprintf("%s[%d]", path, i)
			s.lines[field] = e.Line
			s.index(field, e, depth+1)
		}
	default: // a scalar holds no fields, and an alias stands elsewhere
	}
}

// at returns the place of a field, for messages.
func (s *Source) at(field string) string {
	rule, _, _ := strings.Cut(field, ".")
	for _, known := range []string{field, rule} {
		if line, ok := s.lines[known]; ok {
			return fmt.Sprintf("%s:%d: %s", s.name, line, field)
		}
	}
	return s.name + ": " + field
}

// fieldAt returns the innermost field that begins on a line.
func (s *Source) fieldAt(line int) string {
	found := ""
	for field, l := range s.lines {
		if l == line && (len(field) > len(found) || len(field) == len(found) && field < found) {
			found = field
		}
	}
	return found
}

var (
	atLine  = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)
	unknown = regexp.MustCompile(`^field (.*) not found in type .*$`)
	gotType = regexp.MustCompile("^cannot unmarshal \\S+ (`.*` )?into (.*)$")
)

// types describes the Go type of a field in words.
var types = map[string]string{
	"bool": "true or false", "int": "a whole number", "string": "text", "[]string": "a list, such as [a, b]", "[]int": "a list of numbers, such as [402, 404]",
	"config.File": "options, such as listen: 127.0.0.1:8080", "config.Rule": "a rule, such as {match: POST /payments}", "[]config.Rule": "a list of rules",
}

// meant is the field that somebody has written with underscores or with capitals.
func meant(field string) string {
	name := strings.ToLower(strings.ReplaceAll(field, "_", "-"))
	var known func(t reflect.Type) bool
	known = func(t reflect.Type) bool {
		for i := range t.NumField() {
			f := t.Field(i)
			tag, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if tag == name || f.Type.Kind() == reflect.Struct && known(f.Type) {
				return true
			}
		}
		return false
	}
	if name == field || !known(reflect.TypeFor[File]()) && !known(reflect.TypeFor[Rule]()) {
		return ""
	}
	return "; did you mean " + name + "?"
}

// mistakes turns a YAML error into one that names file, line and field.
func (s *Source) mistakes(err error) error {
	texts := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if t, ok := errors.AsType[*yaml.TypeError](err); ok {
		texts = t.Errors
	}
	var errs []error
	for _, text := range texts {
		errs = append(errs, s.mistake(text))
	}
	return errors.Join(errs...)
}

func (s *Source) mistake(text string) error {
	m := atLine.FindStringSubmatch(text)
	if m == nil {
		return &input.Error{Field: s.name, Want: text}
	}
	line, _ := strconv.Atoi(m[1]) // digits, or 0, which is no line
	e := &input.Error{Field: fmt.Sprintf("%s:%d", s.name, line), Want: m[2]}
	if u := unknown.FindStringSubmatch(m[2]); u != nil {
		e.Value, e.Want = u[1], "is no field that is known here"+meant(u[1])+"; see semel proxy --help"
		return e
	}
	if field := s.fieldAt(line); field != "" {
		e.Field += ": " + field
	}
	if t := gotType.FindStringSubmatch(m[2]); t != nil {
		e.Value = strings.Trim(t[1], "` ")
		if e.Want = "must be " + types[t[2]]; types[t[2]] == "" {
			e.Want = "does not fit here"
		}
	}
	return e
}
