//go:build unix

package docs

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/proctest"
)

// The functions of the rolling restart, run by sh with free ports and a store in SQLite. They
// stop each process whose command line begins as the proxy's, and no other: not one whose number
// an old file has, and not one whose command line only mentions the proxy's.
func TestDeploy_RestartRecipe_StopsOnlyItsProxy(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"sh", "curl", "pgrep"} {
		need(t, program)
	}
	dir, listen, admin := t.TempDir(), freePort(t), freePort(t)
	recipe := strings.NewReplacer("808$1", listen, "909$1", admin, "postgres://semel@127.0.0.1/semel", "sqlite:semel.db").Replace(restartFunctions(t))
	run := func(commands string) (output string, err error) {
		// Each has a shell of its own, as an operator's may be.
		cmd := exec.Command("sh", "-c", recipe+commands)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(semel(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	must := func(commands string) {
		t.Helper()
		if output, err := run(commands); err != nil || output != "" {
			t.Fatalf("%s: %v: %s", commands, err, output)
		}
	}
	refused := func(commands, want string) (output string) {
		t.Helper()
		output, err := run(commands)
		if err == nil || !strings.Contains(output, want) {
			t.Fatalf("%s: error %v, output %q; want a refusal with %q", commands, err, output, want)
		}
		return output
	}
	t.Cleanup(func() { _, _ = run("stop 1") })

	stranger := proctest.Run(t, exec.Command("sleep", "600"))
	if err := os.WriteFile(filepath.Join(dir, "proxy-1.pid"), []byte(fmt.Sprint(stranger.Pid())), 0o600); err != nil {
		t.Fatal(err)
	}
	mentions := proctest.Run(t, exec.Command("sh", "-c", "sleep 600; : semel proxy --listen 127.0.0.1:"+listen+" "))
	must("stop 1")
	must("start 1")
	refused("start 1", "proxy 1 runs; stop it first")
	must("stop 1 && start 1 && stop 1 && start 1")
	must("stop 1; ! answers http://127.0.0.1:" + admin + "/healthz; stop 1")
	if !stranger.Alive() || !mentions.Alive() {
		t.Error("stop has ended a process that is no proxy")
	}

	must("start 1")
	byHand := exec.Command("sleep", "600")
	byHand.Args[0] = "semel proxy --listen 127.0.0.1:" + listen
	second := proctest.Run(t, byHand)
	must("stop 1")
	must("! answers http://127.0.0.1:" + admin + "/healthz")
	select {
	case <-second.Ended():
	case <-time.After(time.Minute):
		t.Error("stop has ended only one of two processes that match")
	}

	l, err := net.Listen("tcp", "127.0.0.1:"+admin)
	if err != nil {
		t.Fatal(err)
	}
	other := http.Server{Handler: http.NotFoundHandler()}
	defer other.Close()
	go func() { _ = other.Serve(l) }()
	refused("start 1", "ss -ltnp 'sport = :"+admin+"'")
	_ = other.Close()
	taken, err := net.Listen("tcp", "127.0.0.1:"+listen)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	const earlier = "an error of an earlier start"
	if err := os.WriteFile(filepath.Join(dir, "proxy-1.log"), []byte(earlier+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	output := refused("start 1", "the end of proxy-1.log:")
	if strings.Contains(output, earlier) || !strings.Contains(output, listen+": ") {
		t.Errorf("start shows %q; want the errors of this start only", output)
	}
}

// restartFunctions is the part of the recipe in docs/deploy.md that defines its functions.
func restartFunctions(t *testing.T) string {
	t.Helper()
	for _, p := range pages(t, "docs/deploy.md") {
		for _, b := range p.blocks {
			if text, _, ok := strings.Cut(strings.Join(b.lines, "\n"), "start 1 && start 2"); ok && strings.Contains(text, "stop() {") {
				return text
			}
		}
	}
	t.Fatal("docs/deploy.md has no block with the functions of the rolling restart")
	return ""
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := proctest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(port)
}
