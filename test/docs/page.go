package docs

import (
	"fmt"
	"strings"
	"unicode"
)

// block is a fenced block of a page.
type block struct {
	lang  string
	line  int // of its first line, from 1
	lines []string
}

// page is a parsed Markdown file.
type page struct {
	name   string // from the root of the repository
	blocks []block
	prose  []string // all lines; the lines of blocks are empty
}

func newPage(name, text string) (page, error) {
	p := page{name: name}
	var open *block
	fence := ""
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case open == nil && strings.HasPrefix(trimmed, "```"):
			fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
			open = &block{lang: strings.ToLower(strings.TrimSpace(strings.TrimLeft(trimmed, "`"))), line: i + 2}
			line = ""
		case open != nil && trimmed == fence:
			p.blocks = append(p.blocks, *open)
			open, line = nil, ""
		case open != nil:
			open.lines = append(open.lines, line)
			line = ""
		}
		p.prose = append(p.prose, line)
	}
	if open != nil {
		return p, fmt.Errorf("%s:%d: a block is opened and never closed", name, open.line-1)
	}
	return p, nil
}

// anchors are the names that a link into the page may have after its #, made
// of the headings as code hosts do.
func (p *page) anchors() map[string]bool {
	names := map[string]bool{}
	for _, line := range p.prose {
		heading := strings.TrimLeft(line, "#")
		if level := len(line) - len(heading); level == 0 || level > 6 || !strings.HasPrefix(heading, " ") {
			continue
		}
		name := slug(heading)
		for n := 1; names[name]; n++ {
			name = fmt.Sprintf("%s-%d", slug(heading), n)
		}
		names[name] = true
	}
	return names
}

func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}
