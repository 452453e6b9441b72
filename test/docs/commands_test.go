package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel/test/internal/repo"
)

// shells are the languages of blocks that hold command lines.
var shells = map[string]bool{"sh": true, "shell": true, "bash": true, "console": true}

// Each command line of a page names a verb that the command has.
func TestCommandLines_VerbsExist(t *testing.T) {
	type line struct {
		page string
		n    int
		text string
	}
	var lines []line
	for _, p := range pages(t, "*.md", "docs/*.md", "docs/how-to/*.md", "docs/reference/*.md", "cmd/*/*.md") {
		for _, b := range p.blocks {
			for i, text := range b.lines {
				// "semel import: …" is a message that a console block shows.
				if verb := verbOf(text); shells[b.lang] && verb != "" && !strings.HasSuffix(verb, ":") {
					lines = append(lines, line{p.name, b.line + i, text})
				}
			}
		}
	}
	if len(lines) == 0 {
		t.Fatal("no page has a command line of semel in a block marked sh, so nothing was checked")
	}
	help := helpOf(t)
	for _, l := range lines {
		if verb := verbOf(l.text); !offers(help, verb) {
			t.Errorf("%s:%d: semel has no verb %q: %s", l.page, l.n, verb, l.text)
		}
	}
}

// A command of an alert that shows a record names its operation, without which it finds only
// calls over HTTP. A hash needs none.
func TestAlerts_InspectGet_NamesOperation(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, "docs", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`semel inspect get KEY[^.]*`).FindAllString(string(b), -1)
	if len(commands) == 0 {
		t.Fatal("no alert has the command semel inspect get KEY, so nothing was checked")
	}
	for _, c := range commands {
		if !strings.Contains(c, " --operation ") {
			t.Errorf("an alert has a command without --operation: %s", c)
		}
	}
}

// Each make target of a page exists.
func TestMakeTargets_Exist(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages(t, "*.md", "docs/*.md", "docs/how-to/*.md") {
		for _, b2 := range p.blocks {
			for i, text := range b2.lines {
				m := makes.FindStringSubmatch(text)
				if shells[b2.lang] && m != nil && !strings.Contains("\n"+string(b), "\n"+m[1]+":") {
					t.Errorf("%s:%d: the Makefile has no target %q", p.name, b2.line+i, m[1])
				}
			}
		}
	}
}

var (
	makes   = regexp.MustCompile(`^\s*(?:\$ )?make ([a-z][a-z-]*)`)
	command = regexp.MustCompile(`^\s*(?:\$ )?(?:[A-Z_]+=\S* )*(?:go run \./cmd/semel|(?:\./)?semel)\s+(\S+)`)
)

// verbOf is the verb of a command line of semel; empty: it is none, or has no
// verb.
func verbOf(line string) string {
	m := command.FindStringSubmatch(line)
	if m == nil || strings.HasPrefix(m[1], "-") {
		return ""
	}
	return m[1]
}

// offers reports whether a help text lists a verb: at the beginning of an
// indented line.
func offers(help, verb string) bool {
	return regexp.MustCompile(`(?m)^[ \t]+` + regexp.QuoteMeta(verb) + `\b`).MatchString(help)
}

// helpOf is the help of the command.
func helpOf(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), semel(t), "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("semel --help: %v\n%s", err, out)
	}
	return string(out)
}

// built is the command, built once for all tests.
var built = sync.OnceValues(func() (string, error) {
	root, err := repo.Root()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "semel-docs-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "semel")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join(root, "cmd", "semel")
	if out, err := build.CombinedOutput(); err != nil {
		return program, fmt.Errorf("cmd/semel does not build: %w\n%s", err, out)
	}
	return program, nil
})

// asked is set once built was called.
var asked atomic.Bool

// semel is the path of the command.
func semel(t *testing.T) string {
	t.Helper()
	asked.Store(true)
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func TestMain(m *testing.M) {
	code := m.Run()
	if asked.Load() {
		if program, _ := built(); program != "" { // its error has failed a test
			_ = os.RemoveAll(filepath.Dir(program))
		}
	}
	os.Exit(code)
}
