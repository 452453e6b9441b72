//go:build unix

package docs

import (
	"strings"
	"testing"
)

// Each console block is run: the blocks of a page in their order, in one shell that starts
// at the root of the repository. A line that begins with "$ " is a command, and the lines
// after it are its output, which is compared.
func TestConsoleBlocks_Run_PrintWhatThePageShows(t *testing.T) {
	found := false
	for _, p := range pages(t, "*.md", "docs/*.md", "docs/how-to/*.md") {
		var commands []shellCommand
		for _, b := range p.blocks {
			if b.lang == "console" {
				commands = append(commands, commandsOf(b)...)
			}
		}
		if len(commands) == 0 {
			continue
		}
		found = true
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			var all []string
			for _, c := range commands {
				all = append(all, c.text)
			}
			s := newShell(t, strings.Join(all, "\n"))
			for _, c := range commands {
				if got := s.run(t, c.text, len(c.output)); !s.matches(c.output, got) {
					t.Fatalf("%s:%d: $ %s\nprints\n%s\nand the page shows\n%s", p.name, c.line, c.text, strings.Join(got, "\n"), strings.Join(c.output, "\n"))
				}
			}
		})
	}
	if !found {
		t.Error("no page has a console block, so nothing was run")
	}
}

// shellCommand is a command of a page, and the output that the page shows.
type shellCommand struct {
	line   int
	text   string
	output []string
}

// commandsOf reads a console block. A command whose line ends with a backslash goes on in
// the next line.
func commandsOf(b block) (all []shellCommand) {
	indent := b.lines[0][:len(b.lines[0])-len(strings.TrimLeft(b.lines[0], " "))] // of a block in a list
	for i := 0; i < len(b.lines); i++ {
		line := strings.TrimPrefix(b.lines[i], indent)
		text, isCommand := strings.CutPrefix(line, "$ ")
		if !isCommand {
			last := &all[len(all)-1]
			last.output = append(last.output, line)
			continue
		}
		c := shellCommand{line: b.line + i, text: text}
		for strings.HasSuffix(c.text, `\`) {
			i++
			c.text += "\n" + strings.TrimPrefix(b.lines[i], indent)
		}
		all = append(all, c)
	}
	return all
}

func TestCommandsOf_Block_CommandsAndOutput(t *testing.T) {
	got := commandsOf(block{line: 7, lines: []string{"  $ a \\", "    b", "  1", "  2", "  $ c"}})
	if len(got) != 2 || got[0].text != "a \\\n  b" || len(got[0].output) != 2 || got[1].line != 11 || len(got[1].output) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestShell_OutputDiffers_IsFound(t *testing.T) {
	s := shell{actual: map[string]string{}}
	for page, c := range map[string]struct {
		got  string
		same bool
	}{
		"fence 1795000000000001":            {"fence 1795999999999999", true},
		"changed 3s ago":                    {"changed   41ms ago", true},
		"at 2026-11-28T10:00:00.12Z":        {"at 2027-01-02T03:04:05+01:00", true},
		"2026/11/29 00:05:25 WARN parked":   {"2027/01/02 10:00:00 WARN parked", true},
		"holder laptop/812":                 {"holder ci-7/99", true},
		"the error: …":                      {"the error: a long one", true},
		"charged 42 cents":                  {"charged 43 cents", false},
		"semel: in progress":                {"semel: outcome unknown", false},
		"resolved, with fence 179500000000": {"resolved", false},
	} {
		if got := s.matches([]string{page}, []string{c.got}); got != c.same {
			t.Errorf("%q and %q: the same is %v", page, c.got, got)
		}
	}
	if got := s.actual["1795000000000001"]; got != "1795999999999999" {
		t.Errorf("the fence of the page stands for %q", got)
	}
	if s.matches([]string{"a"}, nil) {
		t.Error("a missing line is not noticed")
	}
}

func TestShell_ModuleIsDownloaded_NotPartOfTheOutput(t *testing.T) {
	s := newShell(t, "")
	if got := s.run(t, "echo 'go: downloading golang.org/x/sys v0.48.0' >&2; echo charged", 1); len(got) != 1 || got[0] != "charged" {
		t.Errorf("printed %q", got)
	}
}

func TestShell_Background_WaitsForItsLines(t *testing.T) {
	s := newShell(t, "")
	if got := s.run(t, "(sleep 0.1; echo late) &", 1); len(got) != 1 || got[0] != "late" {
		t.Errorf("printed %q", got)
	}
}
