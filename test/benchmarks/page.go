package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// markdown is a page that is written from its beginning.
type markdown struct{ strings.Builder }

func (m *markdown) line(format string, args ...any) {
	m.WriteString(fmt.Sprintf(format, args...) + "\n\n")
}

// item writes a line of a list.
func (m *markdown) item(format string, args ...any) {
	m.WriteString("- " + fmt.Sprintf(format, args...) + "\n")
}

// table writes a table. Columns after the first left ones are to the right.
func (m *markdown) table(left int, head []string, rows [][]string) {
	m.WriteString("| " + strings.Join(head, " | ") + " |\n|" + strings.Repeat("---|", left) + strings.Repeat("--:|", len(head)-left) + "\n")
	for _, row := range rows {
		m.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	m.WriteString("\n")
}

// generated stands at the top of each page.
const generated = "`make bench` writes this page from the figures in [`docs/benchmarks`](benchmarks/). Do not edit it."

// pages are the documents, each made from the figures alone.
var pages = map[string]func(r *report, charts map[string]string) string{
	"benchmarks.md": benchmarksPage,
	"sizing.md":     func(r *report, _ map[string]string) string { return sizingPage(r) },
	"scale.md":      scalePage,
}

// render makes all files from the figures, by their paths in docs. It fails if a figure
// is missing.
func render(r *report) (map[string]string, error) {
	files, charts := map[string]string{}, map[string]string{}
	for name, page := range pages {
		files[name] = strings.TrimRight(page(r, charts), "\n") + "\n"
	}
	for name, svg := range charts {
		files["images/benchmarks/"+name+".svg"] = svg
	}
	if len(r.missing) > 0 {
		return nil, errors.New("these figures are missing; measure their sections:\n" + strings.Join(r.missing, "\n"))
	}
	return files, nil
}

// writePages makes all files from the figures in a folder.
func writePages(folder, out string) error {
	r, err := readReport(folder)
	if err != nil {
		return err
	}
	files, err := render(r)
	if err != nil {
		return err
	}
	for name, text := range files {
		file := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// origin says where the figures of a section come from, and how quiet it was.
func (r *report) origin(section string) string {
	res := r.sections[section]
	if res == nil {
		r.missing = append(r.missing, "all of section "+section)
		return ""
	}
	text := fmt.Sprintf("Measured on %s UTC at commit `%s` with %s on %s, in %s.", res.Date, res.Commit, res.Go, res.Machine, res.Took)
	if res.Others[2] > 0 {
		text += fmt.Sprintf(" %d rounds of %s for each contender. Before the rounds other processes used %.0f %% of the processors (median; quartiles %.0f and %.0f); the host took away %.1f %%.",
			res.Rounds, res.Each, res.Others[1], res.Others[0], res.Others[2], res.Steal[1])
		if res.Others[1] > quietShare {
			text += " **The machine was not quiet: rates and latencies come from the share that was left. Ratios and processor times say more.**"
		}
	}
	return text + " The command: `cd test && go run ./benchmarks -out ../docs -only " + section + "`."
}

// span is a median with its quartiles.
func span(s Stat, digits int) string {
	switch s {
	case Stat{}:
		return ""
	case once(s[1]):
		return number(s[1], digits)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s[1], digits), number(s[0], digits), number(s[2], digits))
}

// number has the given digits after the point, none from 100 on, and three instead of
// two below 0.1.
func number(v float64, digits int) string {
	switch {
	case v >= 100:
		return thousands(int(v + .5))
	case v < .1 && digits == 2:
		digits = 3
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// thousands separates the digits of a number that is not negative.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size is a number of bytes with a unit.
func size(bytes float64) string {
	for _, unit := range []string{"B", "KB", "MB", "GB", "TB"} {
		if bytes < 1000 || unit == "TB" {
			return number(bytes, min(1, len(unit)-1)) + " " + unit
		}
		bytes /= 1000
	}
	return ""
}
