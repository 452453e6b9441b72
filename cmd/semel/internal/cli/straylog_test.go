//go:build unix

package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/program"
)

var (
	listeningJSON = regexp.MustCompile(`"msg":"listening","addr":"([^"]+)"`)
	stray         = regexp.MustCompile(`Unsolicited response`)
)

// net/http logs what an upstream sends behind an answer that has no body, such
// as 204, and quotes it. Some frameworks do that.
func TestLog_StrayUpstreamBytes_NotQuoted(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n{\"card\":\"canary\"}")
			defer c.Close() // at the end: the connection is examined
		}
	}()
	p := spawn(t, "proxy", "--json", "--listen", "127.0.0.1:0", "--upstream", "http://"+l.Addr().String(), "--scope", "single", "--store", "memory:")
	p.waitLog(listeningJSON)
	if r := <-postLater(t, listeningJSON.FindStringSubmatch(p.Log())[1], "k"); r.err != nil || r.status != http.StatusNoContent {
		t.Fatalf("%+v", r)
	}
	p.waitLog(stray)
	p.signal(syscall.SIGTERM)
	if code := p.exit(time.Minute); code != program.ExitOK {
		t.Errorf("exit code %d", code)
	}
	if strings.Contains(p.Log(), "canary") {
		t.Errorf("the log quotes an answer:\n%s", p.Log())
	}
	for line := range strings.Lines(p.Log()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no line of JSON: %s", line)
		}
	}
}
