package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/internal/proctest"
)

// metric is the value of a metric, with its labels if it has some; -1: there is none.
func metric(t *testing.T, addr, name string) float64 {
	t.Helper()
	_, text := get(t, "http://"+addr+"/metrics")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return -1
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// highWater is the most memory that a process has had, in bytes; 0 if it is gone.
func highWater(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, ok := bytes.Cut(b, []byte("VmHWM:"))
	if !ok {
		return 0
	}
	kib, _ := strconv.Atoi(strings.Fields(string(rest))[0])
	return kib << 10
}

// While the service does not answer, and while the backlog is sent after that, the program
// has the memory that docs/deliver.md names: --max-bytes, twice a body for each request, and
// a base. The messages that wait for the limit of their tenant are among --max-bytes.
func TestCampaign_SlowServiceAndLargeBacklog_MemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("sends 300 MB through a broker")
	}
	const (
		messages, size        = 3000, 100 << 10
		concurrency, maxBytes = 16, 16 << 20
		base                  = 112 << 20
		most                  = base + maxBytes + 2*concurrency*size
	)
	answer := make(chan struct{})
	var mu sync.Mutex
	got := map[string]bool{}
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-answer
		mu.Lock()
		defer mu.Unlock()
		got[r.Header.Get("Idempotency-Key")] = true
	}))
	t.Cleanup(service.Close)
	goOn := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(goOn)

	b, body := openNATS(t), strings.Repeat("x", size)
	for n := range messages {
		b.publish(t, fmt.Sprint("k", n), fmt.Sprint("tenant", n%5), body)
	}
	args := []string{
		b.args[0], b.args[1], "--to", service.URL, "--store", "memory:", "--admin-listen", "127.0.0.1:0", "--scope", "header:" + orderHeader,
		"--concurrency", fmt.Sprint(concurrency), "--tenant-requests", "2", "--lease", "300ms", "--max-bytes", fmt.Sprint(maxBytes),
	}
	cmd, log := proctest.Self(t, roleVar+"=deliver", argsVar+"="+strings.Join(args, "\n"), "GOMEMLIMIT=48MiB", "GOGC=100"), &proctest.Log{}
	cmd.Stderr = log
	p := proctest.Run(t, cmd)
	admin := (&delivering{log: log}).find(t, adminAddr)
	eventually(t, "as many bytes are here as may be, and messages wait for their tenants", func() bool {
		return metric(t, admin, "semel_message_bytes") > maxBytes-size && metric(t, admin, "semel_limit_tenant_requests_waiting") > 0
	})
	const renewals = `semel_store_seconds_count{answered="true",request="renew"}` // ten each 100 ms, so that a limit that fails shows
	began := metric(t, admin, renewals)
	eventually(t, "the requests have hung for a while", func() bool { return metric(t, admin, renewals) > began+100 })
	slow := highWater(p.Pid())
	goOn()
	eventually(t, "the service has all messages", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) == messages
	})
	all := highWater(p.Pid())
	t.Logf("at most %d MiB while the service did not answer, and %d MiB until it had all messages; %d MiB may be", slow>>20, all>>20, most>>20)
	if slow == 0 || all > most {
		t.Errorf("the memory was %d MiB, at most %d may be", all>>20, most>>20)
	}
}
