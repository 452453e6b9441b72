package docs

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

// pages are the Markdown files whose names fit one of the patterns.
func pages(t *testing.T, patterns ...string) []page {
	t.Helper()
	files, err := repo.Files(".md")
	if err != nil {
		t.Fatal(err)
	}
	var ps []page
	for _, f := range files {
		if !slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, f.Name); return ok }) {
			continue
		}
		p, err := newPage(f.Name, f.Text)
		if err != nil {
			t.Error(err)
			continue
		}
		ps = append(ps, p)
	}
	return ps
}

// suffixes are the ends of the names of source files, by the language of a block.
var suffixes = map[string]string{"go": ".go", "python": ".py", "typescript": ".ts", "java": ".java", "bash": ".sh"}

// Code on a page is code that compiles or runs: each block is found, line by line, in a
// source file of the repository, which a test uses. Indentation does not count.
func TestCodeBlocks_AreInSourceFiles(t *testing.T) {
	sources := map[string][][]string{}
	for lang, suffix := range suffixes {
		files, err := repo.Files(suffix)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.HasPrefix(f.Text, "//go:build ignore") {
				sources[lang] = append(sources[lang], flat(f.Text))
			}
		}
	}
	for _, p := range pages(t, "*.md", "docs/*.md", "docs/how-to/*.md", "docs/reference/*.md") {
		for _, b := range p.blocks {
			texts, ok := sources[b.lang]
			if !ok {
				continue
			}
			code := flat(strings.Join(b.lines, "\n"))
			if !slices.ContainsFunc(texts, func(text []string) bool { return holds(text, code) }) {
				t.Errorf("%s:%d: this block is in no %s file of the repository; %s\n%s", p.name, b.line, suffixes[b.lang], nearest(texts, code), strings.Join(b.lines, "\n"))
			}
		}
	}
}

// flat is the lines of a text without the space around them, and without the
// empty lines at both ends.
func flat(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// holds reports whether part is somewhere in text.
func holds(text, part []string) bool { return longest(text, part) == len(part) }

// longest is how many lines of part, from its first, are somewhere in text.
func longest(text, part []string) int {
	most := 0
	for i := range text {
		n := 0
		for n < len(part) && i+n < len(text) && text[i+n] == part[n] {
			n++
		}
		most = max(most, n)
	}
	return most
}

// nearest tells how far the block agrees with any source.
func nearest(texts [][]string, code []string) string {
	most := 0
	for _, text := range texts {
		most = max(most, longest(text, code))
	}
	if most == 0 {
		return "not even its first line is."
	}
	return "it differs from the nearest in the line \"" + code[most] + "\"."
}
