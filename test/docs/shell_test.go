//go:build unix

package docs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
	"github.com/semel-go/semel/test/internal/repo"
)

// shell is a bash that runs the commands of a page.
type shell struct {
	in     io.Writer
	lines  chan string       // closed when the shell has ended
	dir    string            // stands for ../trial
	actual map[string]string // ports and fencing tokens of this run, by those of the page
}

// commandLimit is how long one command may take. The first builds programs.
const commandLimit = 5 * time.Minute

// endOfCommand is printed after each command.
const endOfCommand = "== the command has ended =="

var errMissing = errors.New("a program that a page uses is missing")

// programs are those that the commands of pages use besides semel and Go.
var programs = regexp.MustCompile(`(?m)(?:^|[(| ])(python3|node|java|curl|openssl|sqlite3) `)

// need skips the test if a program is not installed, or fails it if SEMEL_TEST_REQUIRE is 1.
func need(t *testing.T, program string) (path string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		proctest.Need(t, fmt.Errorf("%w: %w", errMissing, err), errMissing)
	}
	return path
}

// newShell starts a shell at the root of the repository, with semel in its path. Each port
// in the commands of the page gets a free one. The programs that the shell starts end with
// the test.
func newShell(t *testing.T, commands string) *shell {
	t.Helper()
	for _, m := range programs.FindAllStringSubmatch(commands, -1) {
		need(t, m[1])
	}
	path := need(t, "bash")
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(semel(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	s := &shell{in: in, lines: make(chan string, 1024), dir: t.TempDir(), actual: map[string]string{}}
	for _, m := range ports.FindAllStringSubmatch(commands, -1) {
		port, err := proctest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		s.actual[m[1]] = fmt.Sprint(port)
	}
	p := proctest.Run(t, cmd)
	t.Cleanup(func() { _ = syscall.Kill(-p.Pid(), syscall.SIGKILL) }) // the group has the programs that still run
	_ = write.Close()
	go func() {
		defer close(s.lines)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			s.lines <- lines.Text()
		}
	}()
	return s
}

// notOutput is what bash says about a program that was killed, and what go says when a module
// is used for the first time on a machine.
var notOutput = regexp.MustCompile(`^\S*bash: (?:line \d+: +)?\d+ Killed|^go: downloading `)

// run runs a command and returns what it prints. After a command in the background it
// waits for as many lines as the page shows.
func (s *shell) run(t *testing.T, text string, shown int) (printed []string) {
	t.Helper()
	if _, err := fmt.Fprintf(s.in, "%s\necho '%s'\n", s.substitute(text), endOfCommand); err != nil {
		t.Fatalf("$ %s: %v", text, err)
	}
	late := time.After(commandLimit)
	background, ended := strings.HasSuffix(text, "&"), false
	for !ended || background && len(printed) < shown {
		select {
		case line, ok := <-s.lines:
			switch {
			case !ok:
				t.Fatalf("$ %s: the shell has ended:\n%s", text, strings.Join(printed, "\n"))
			case line == endOfCommand:
				ended = true
			case !notOutput.MatchString(line):
				printed = append(printed, line)
			}
		case <-late:
			t.Fatalf("$ %s: has not ended, or not printed %d lines, after %v:\n%s", text, shown, commandLimit, strings.Join(printed, "\n"))
		}
	}
	return printed
}

// ports are addresses of a page.
var ports = regexp.MustCompile(`127\.0\.0\.1:(\d+)`)

// substitute replaces the folder, the ports and the fencing tokens of the page by those of this
// run.
func (s *shell) substitute(text string) string {
	text = strings.ReplaceAll(text, "../trial", s.dir)
	for shown, actual := range s.actual {
		text = regexp.MustCompile(`\b`+shown+`\b`).ReplaceAllString(text, actual)
	}
	return text
}

// variable are the parts of an output that differ from run to run: times, fencing tokens,
// ports, process numbers after the name of the machine, and durations.
var variable = regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)|\b\d{13,}\b|127\.0\.0\.1:\d+|\b[\w.-]+/\d+\b|\b[0-9a-f]{32}\b|\b\d+(?:\.\d+)?(?:ms|µs|ns|m|s)\b`)

// matches reports whether an output is the one that the page shows. It ignores the parts that
// vary, the width of columns, and the rest of a line that ends with an ellipsis on the page.
// It keeps the fencing tokens, so that later commands of the page can name them.
func (s *shell) matches(page, got []string) bool {
	if len(page) != len(got) {
		return false
	}
	for i := range page {
		want, shortened := strings.CutSuffix(strings.ReplaceAll(page[i], "../trial", s.dir), "…")
		a, b := normalize(want), normalize(got[i])
		if shortened && !strings.HasPrefix(b, a) || !shortened && a != b {
			return false
		}
		actual := variable.FindAllString(got[i], -1)
		for n, token := range variable.FindAllString(want, -1) {
			if strings.Trim(token, "0123456789") == "" {
				s.actual[token] = actual[n]
			}
		}
	}
	return true
}

// normalize returns a line with marks instead of the parts that vary.
func normalize(line string) string {
	return strings.Join(strings.Fields(variable.ReplaceAllString(line, "<…>")), " ")
}
