package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// machine is what the figures were seen on, without its name.
type machine struct {
	commit, goVersion, os, cpu string
	cores                      int
}

func thisMachine(ctx context.Context, root string) machine {
	m := machine{goVersion: runtime.Version(), os: runtime.GOOS + "/" + runtime.GOARCH, cpu: "unknown", cores: runtime.NumCPU(), commit: "unknown"}
	if b, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*").Output(); err == nil {
		m.commit = strings.TrimSpace(string(b))
	}
	b, _ := os.ReadFile("/proc/cpuinfo") // other systems: unknown
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.cpu = strings.TrimSpace(value)
			break
		}
	}
	return m
}

type page struct {
	machine
	began    time.Time
	sections []done
	before   string // the old page: the sections of other steps are kept
}

// String is the page as Markdown, with its sections in the order of the steps.
func (p *page) String() string {
	var b strings.Builder
	b.WriteString("# Evidence\n\nWhat `make evidence` counted; each section says when, at which commit and on which machine. Do not edit: the command writes this page.\n\n")
	b.WriteString("The bound is that of the rate of failures with 95 % confidence: no failure in n trials means below 3/n. " +
		"A control is broken on purpose: its failures show that the test would see them.\n")
	texts := map[string]string{}
	for old := range strings.SplitSeq(p.before, heading) {
		title, _, _ := strings.Cut(old, "\n")
		texts[title] = strings.TrimRight(old, "\n") + "\n"
	}
	for i := range p.sections {
		texts[p.sections[i].title()] = p.section(&p.sections[i])
	}
	for i := range steps {
		if text, ok := texts[steps[i].title()]; ok {
			b.WriteString(heading + text)
		}
	}
	return b.String()
}

// heading begins a section, and its title follows.
const heading = "\n## "

func (s *step) title() string { return strings.ToUpper(s.name[:1]) + s.name[1:] }

func (p *page) section(d *done) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s\n\n%s On %s at commit `%s`, with %s on %s, %d cores (%s), it took %v and %s.\n\n",
		d.title(), d.about, p.began.UTC().Format(time.DateOnly), p.commit, p.goVersion, p.os, p.cores, p.cpu, d.took.Round(time.Second), d.verdict())
	fmt.Fprintf(b, "    cd %s && %s\n", d.dir, strings.Join(append(append([]string{}, d.env...), append([]string{"go", "test", "-count=1", "-v"}, append(quoted(d.args), ".")...)...), " "))
	if len(d.figures) == 0 {
		return b.String()
	}
	b.WriteString("\n| What | Where | Trials | Failures | Bound | Besides |\n|---|---|--:|--:|--:|---|\n")
	for _, f := range d.figures {
		bound, besides := f.Bound(), f.Detail
		if f.Control {
			bound = "control"
		}
		if f.Seeds != "" {
			besides = strings.TrimPrefix(besides+"; seeds "+f.Seeds, "; ")
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", cell(f.Claim), cell(f.Where), thousands(f.Trials), thousands(f.Failures), bound, cell(besides))
	}
	return b.String()
}

// cell is text that does not end its cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(s)
}

// quoted puts into quotes what a shell would take apart.
func quoted(args []string) []string {
	var q []string
	for _, a := range args {
		if strings.ContainsAny(a, "$|^* ") {
			a = "'" + a + "'"
		}
		q = append(q, a)
	}
	return q
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
