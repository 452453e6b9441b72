// Package optionstest writes the options of a command line as a page of docs/reference.
// It is for the tests that compare these pages with the code.
package optionstest

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/semel-go/semel/internal/pagetest"
)

// Option is an option of a command as a reader sees it.
type Option struct {
	Name, Placeholder string
	Default           string // empty: the help names none
	IsValue           bool   // Default is a value that the option takes, and no description
	Meaning           string
}

// FromFlag is an option of kong's model. Its help names a default as (default VALUE), or
// describes it as (default: WORDS); both may go on after a semicolon.
func FromFlag(f *kong.Flag) Option {
	o := Option{Name: f.Name}
	if !f.IsBool() {
		o.Placeholder = f.PlaceHolder
	}
	o.Default, o.IsValue, o.Meaning = splitDefault(f.Help)
	switch {
	case f.HasDefault && o.Default == "":
		o.Default, o.IsValue = f.Default, true
	case o.Default != "":
	case f.IsBool():
		o.Default = "off"
	case strings.HasSuffix(o.Meaning, "Required."):
		o.Default, o.Meaning = "required", strings.TrimSpace(strings.TrimSuffix(o.Meaning, "Required."))
	}
	return o
}

var (
	inWords   = regexp.MustCompile(` \(default: ((?:\([^)]*\)|[^;()])+)(?:; ([^)]*))?\)`) // (default: the system's)
	asValue   = regexp.MustCompile(` \(default (\S+?)[;,]?(?: ([^)]*))?\)`)               // (default 60s; 0: for ever)
	explained = regexp.MustCompile(` \(default ((\S+): [^)]*)\)`)                         // (default 0: no limit)
	afterWord = regexp.MustCompile(`(\S+) \(default(?:[;,] [^)]*)?\)`)                    // retry (default; a repeat goes upstream again)
)

// splitDefault takes the default out of a help text. A default that stands after its word,
// or before a colon and its meaning, stays in the text, too.
func splitDefault(help string) (def string, isValue bool, rest string) {
	if m := explained.FindStringSubmatch(help); m != nil {
		return m[2], true, explained.ReplaceAllString(help, " ($1)")
	}
	for _, re := range []*regexp.Regexp{inWords, asValue} {
		m := re.FindStringSubmatchIndex(help)
		if m == nil {
			continue
		}
		rest := help[:m[0]]
		if m[4] >= 0 {
			rest += " (" + help[m[4]:m[5]] + ")"
		}
		return help[m[2]:m[3]], re == asValue, rest + help[m[1]:]
	}
	if m := afterWord.FindStringSubmatch(help); m != nil {
		return m[1], true, help
	}
	return "", false, help
}

// grouped returns the visible options of a command, and their groups in the order of its
// help.
func grouped(n *kong.Node) (groups []string, byGroup map[string][]Option) {
	byGroup = map[string][]Option{}
	for _, f := range n.Flags {
		if f.Hidden {
			continue
		}
		group := ""
		if f.Group != nil {
			group = f.Group.Title
		}
		if byGroup[group] == nil {
			groups = append(groups, group)
		}
		byGroup[group] = append(byGroup[group], FromFlag(f))
	}
	return groups, byGroup
}

// WriteOptions writes the options of a command as tables: one for each group, under a
// heading of the level.
func WriteOptions(b *strings.Builder, n *kong.Node, level int) {
	groups, byGroup := grouped(n)
	for _, group := range groups {
		if group != "" {
			fmt.Fprintf(b, "%s %s\n\n", strings.Repeat("#", level), group)
		}
		b.WriteString("| option | default | meaning |\n|---|---|---|\n")
		for _, o := range byGroup[group] {
			name := "--" + o.Name
			if o.Placeholder != "" {
				name += " " + o.Placeholder
			}
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", strings.ReplaceAll(name, "|", `\|`), pagetest.Cell(o.defaultCell()), pagetest.Cell(Prose(o.Meaning)))
		}
		b.WriteString("\n")
	}
}

// defaultCell is the default as Markdown.
func (o *Option) defaultCell() string {
	switch {
	case o.Default == "":
		return "none"
	case o.IsValue:
		return "`" + o.Default + "`"
	}
	return Prose(o.Default)
}

var (
	code    = regexp.MustCompile(`--[a-z][a-z0-9-]*|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|\bsemel(?:_[a-z0-9]+)+|\b[a-z0-9+]+://[^\s,;)]*[^\s,;.:)]`)
	special = strings.NewReplacer("<", `\<`, "*", `\*`)
)

// Prose is a text of a help as Markdown: options, variables and URLs are code.
func Prose(text string) string {
	var b strings.Builder
	at := 0
	for _, m := range code.FindAllStringIndex(text, -1) {
		b.WriteString(special.Replace(text[at:m[0]]))
		b.WriteString("`" + text[m[0]:m[1]] + "`")
		at = m[1]
	}
	b.WriteString(special.Replace(text[at:]))
	return otherPage.ReplaceAllString(b.String(), "[docs/$1.md](../$1.md)")
}

var otherPage = regexp.MustCompile(`\bdocs/([a-z/-]+)\.md`)

var heading = regexp.MustCompile(`^([A-Z][A-Z' -]+[A-Z])(?: \((.*)\))?$`)

// WriteDetail writes the long help of a command as Markdown: its headings at the level, its
// indented blocks as code, and its paragraphs.
func WriteDetail(b *strings.Builder, help string, level int) {
	examples := false
	for _, part := range strings.Split(strings.TrimSpace(help), "\n\n") {
		m := heading.FindStringSubmatch(part)
		switch {
		case m != nil:
			b.WriteString(strings.Repeat("#", level) + " " + sentence(m[1]))
			if m[2] != "" {
				b.WriteString(" (" + Prose(m[2]) + ")")
			}
			b.WriteString("\n\n")
		case strings.HasPrefix(part, "    "):
			lang := "text"
			if examples {
				lang = "sh"
			}
			fmt.Fprintf(b, "```%s\n%s\n```\n\n", lang, strings.TrimSpace(strings.ReplaceAll("\n"+part, "\n    ", "\n")))
		default:
			b.WriteString(Prose(part) + "\n\n")
		}
		examples = part == "Examples:" || part == "Example:"
	}
}

// sentence is a heading in capitals as the beginning of a sentence.
func sentence(capitals string) string {
	r := []rune(strings.ToLower(capitals))
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

// Generated is the first line of each page.
const Generated = "<!-- Made from the code by \"make docs\". Change the help texts in the code, and not this page. -->\n\n"
