//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/observe"
	"github.com/semel-go/semel/internal/proctest"
)

// listensAt finds the address in a log of text or of JSON.
var listensAt = regexp.MustCompile(`"?msg"?[=:]"?listening"?[ ,]"?addr"?[=:]"?([0-9.:]+)`)

// observing runs semel proxy --observe in this process. stop ends it, and returns what it
// printed.
func observing(t *testing.T, args ...string) (addr string, stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout bytes.Buffer
	var stderr proctest.Log
	ended := make(chan int)
	go func() {
		args := append([]string{"proxy", "--observe", "--listen", "127.0.0.1:0", "--scope", "single"}, args...)
		ended <- Run(ctx, args, func(string) string { return "" }, strings.NewReader(""), &stdout, &stderr)
	}()
	eventually(t, time.Minute, "it listens", func() bool { return listensAt.MatchString(stderr.String()) })
	return listensAt.FindStringSubmatch(stderr.String())[1], func() string {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d: %s", code, stderr.String())
		}
		return stdout.String()
	}
}

func TestProxy_Observe_PrintsReportAndOpensNoStore(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	file := filepath.Join(t.TempDir(), "semel.db")
	play := func(args ...string) string {
		addr, stop := observing(t, append([]string{"--upstream", b.URL, "--store", "sqlite:" + file}, args...)...)
		for _, key := range []string{"a", "a", "b", ""} {
			if r, err := post(t.Context(), wire(t), addr, "/pay", key, "{}"); err != nil || r.status != 201 || r.replayed() {
				t.Errorf("%q: %+v, %v", key, r, err)
			}
		}
		return stop()
	}
	said := play()
	for _, want := range []string{"with 4 requests in", "Rule /, operation http", "2  first calls", "1  duplicates after", "1  no key"} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %q:\n%s", want, said)
		}
	}
	var r observe.Report
	if err := json.Unmarshal([]byte(play("--json")), &r); err != nil || r.Requests != 4 || len(r.Rules) != 1 || r.Rules[0].Results[observe.AfterFirst] != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the store was made: %v", err)
	}
	if n := b.of("a"); n != 4 {
		t.Errorf("the service got the key %d times", n)
	}
}
