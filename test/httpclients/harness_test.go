//go:build unix

package httpclients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// waitLimit is how long a test waits for an event.
const waitLimit = time.Minute

var errMissing = errors.New("a program is missing")

// need returns the path of a program.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		proctest.Need(t, fmt.Errorf("%w: %s", errMissing, program), errMissing)
	}
	return path
}

// fetched returns what testdata/fetch.sh prints for a part.
func fetched(t *testing.T, part string) string {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "testdata/fetch.sh", part)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		proctest.Need(t, fmt.Errorf("%w: %s: %s", errMissing, part, strings.TrimSpace(said.String())), errMissing)
	}
	return strings.TrimSpace(string(out))
}

// semel is the program, built once for all tests.
var semel = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "semel-httpclients-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "semel")
	out, err := exec.Command("go", "build", "-o", path, "github.com/semel-go/semel/cmd/semel").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

var built bool

func TestMain(m *testing.M) {
	code := m.Run()
	if built {
		if path, err := semel(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	}
	os.Exit(code)
}

// lines starts a program and returns the lines that it prints to an output.
func lines(t *testing.T, cmd *exec.Cmd, pipe func() (io.ReadCloser, error)) <-chan string {
	t.Helper()
	out, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan string, 1024)
	proctest.Run(t, cmd)
	go func() {
		defer close(all)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case all <- s.Text():
			default: // nobody reads what a server says later
			}
		}
	}()
	return all
}

// first returns the first match of a pattern in the lines.
func first(t *testing.T, all <-chan string, pattern string) string {
	t.Helper()
	re, said := regexp.MustCompile(pattern), []string{}
	late := time.After(waitLimit)
	for {
		select {
		case line, ok := <-all:
			if !ok {
				t.Fatalf("it has ended before it printed %s:\n%s", pattern, strings.Join(said, "\n"))
			}
			if m := re.FindStringSubmatch(line); m != nil {
				return m[1]
			}
			said = append(said, line)
		case <-late:
			t.Fatalf("it has not printed %s:\n%s", pattern, strings.Join(said, "\n"))
		}
	}
}

// service starts a service that prints its port, and returns its URL.
func service(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	return "http://127.0.0.1:" + first(t, lines(t, cmd, cmd.StdoutPipe), `^(\d+)$`)
}

// proxy starts semel proxy in front of a service, and returns its URL.
func proxy(t *testing.T, upstream string, args ...string) string {
	t.Helper()
	path, err := semel()
	if err != nil {
		t.Fatal(err)
	}
	built = true
	cmd := exec.Command(path, append([]string{"proxy", "--listen", "127.0.0.1:0", "--upstream", upstream, "--scope", "single", "--store", "memory:", "--on-doubt", "park"}, args...)...)
	return "http://" + first(t, lines(t, cmd, cmd.StderrPipe), `msg=listening addr=(\S+)`)
}

// answer is what a client prints.
type answer struct {
	Status   int
	Replayed bool
	URL      string
	Body     string
}

// run runs a client to its end.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	return string(out)
}

// twoAnswers reads the two answers that a client printed as JSON: the first one, and
// a replay.
func twoAnswers(t *testing.T, out string, status int) (firstOne, replay answer) {
	t.Helper()
	var got []answer
	for line := range strings.Lines(out) {
		var a answer
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &a) == nil {
			got = append(got, a)
		}
	}
	if len(got) != 2 || got[0].Status != status || got[0].Replayed || got[1].Status != status || !got[1].Replayed || got[0].Body != got[1].Body {
		t.Fatalf("the client got %+v, want %d and its replay:\n%s", got, status, out)
	}
	return got[0], got[1]
}

// wantDone asks a service how often it has done its work.
func wantDone(t *testing.T, upstream, path string, want int) {
	t.Helper()
	res, err := http.Get(upstream + "/done")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	done := map[string]int{}
	if err := json.NewDecoder(res.Body).Decode(&done); err != nil {
		t.Fatal(err)
	}
	if done[path] != want {
		t.Errorf("the service has done %s %d times, want %d", path, done[path], want)
	}
}
