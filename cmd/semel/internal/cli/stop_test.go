//go:build unix

package cli

import (
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Another proxy on the same store takes over from a proxy that is frozen for longer
// than its lease. The store refuses the outcome of the frozen proxy.
func TestProxy_FrozenPastLease_TakenOver(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	args := []string{"--listen", "127.0.0.1:0", "--upstream", g.URL, "--scope", "single", "--store", "sqlite:" + filepath.Join(t.TempDir(), "semel.db"),
		"--lease", "3s", "--sweep-every", "0"}
	one, two := start(t, args...), start(t, args...)
	first := postLater(t, one.Addr, "k")
	<-g.in
	one.signal(syscall.SIGSTOP)
	defer one.signal(syscall.SIGCONT)
	var second <-chan answered
	eventually(t, 2*time.Minute, "the other takes over", func() bool {
		second = postLater(t, two.Addr, "k")
		select {
		case <-g.in:
			return true
		case r := <-second:
			if r.err != nil || r.status != http.StatusConflict {
				t.Fatalf("%+v", r)
			}
			return false
		}
	})
	g.out <- http.StatusCreated // one of the two runs gets it, and the other the next
	g.out <- http.StatusCreated
	won := <-second
	if won.err != nil || won.status != http.StatusCreated || won.replayed() {
		t.Fatalf("the one that took over got %+v", won)
	}
	one.signal(syscall.SIGCONT)
	if lost := <-first; lost.err != nil || lost.status != http.StatusConflict || lost.body == won.body {
		t.Errorf("the one that was frozen answered %+v", lost)
	}
	for _, p := range []*proc{one, two} {
		if r := <-postLater(t, p.Addr, "k"); r.err != nil || r.status != http.StatusCreated || r.body != won.body || !r.replayed() {
			t.Errorf("a duplicate got %+v, want %s", r, won.body)
		}
	}
}
