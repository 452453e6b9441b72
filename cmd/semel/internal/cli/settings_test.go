//go:build unix

package cli

import (
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/store/pgstore/pgtest"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

// If the store accepts a connection and never answers, the log must say why the
// proxy does not serve.
func TestProxy_StoreHangsAtStart_LogsWait(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts: the system does
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	p := spawn(t, "proxy", "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1", "--scope", "single",
		"--store", "postgres://app:canary@"+silent.Addr().String()+"/shop")
	p.waitLog(regexp.MustCompile(`level=WARN msg="the store has not answered yet" store=postgres://app@` + silent.Addr().String() + "/shop"))
	p.signal(syscall.SIGTERM)
	if code := p.exit(time.Minute); code != program.ExitFailed || strings.Contains(p.Log(), "canary") {
		t.Errorf("exit code %d\n%s", code, p.Log())
	}
}

// The proxy starts on a store with unsafe settings, because they may be intended,
// and it logs a warning each time.
func TestProxy_UnsafeStoreSettings_Warns(t *testing.T) {
	t.Parallel()
	unsafe := pgtest.Start(t, "fsync=off", "full_page_writes=off", "synchronous_commit=off")
	for url, settings := range map[string][]string{
		unsafe.URL(): {"fsync is off", "full_page_writes is off", "synchronous_commit is off"},
		"sqlite:" + filepath.Join(t.TempDir(), "semel.db"): nil,
	} {
		p := start(t, "--listen", "127.0.0.1:0", "--upstream", "http://127.0.0.1:1", "--scope", "single", "--store", url, "--on-doubt", "park")
		before, _, _ := strings.Cut(p.Log(), "msg=listening")
		if warned := strings.Contains(before, "level=WARN"); warned != (len(settings) > 0) {
			t.Errorf("it warned: %v\n%s", warned, before)
		}
		for _, s := range settings {
			if !strings.Contains(before, s) {
				t.Errorf("no word of %q in\n%s", s, before)
			}
		}
		p.kill()
	}
}
