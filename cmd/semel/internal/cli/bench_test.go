//go:build unix

package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// roles are what this test binary can be besides a test, in processes of their own: the
// contender and the service of the benchmark, and the service and the clients of the
// flood.
const roleVar, upstreamVar = "SEMEL_TEST_ROLE", "SEMEL_TEST_UPSTREAM"

// play plays a role until the process is killed.
func play(role string) int {
	var h http.Handler
	switch role {
	case "service":
		h = http.HandlerFunc(serveAnswer)
	case "bare", "refusing":
		u, err := url.Parse(os.Getenv(upstreamVar))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		bare := &httputil.ReverseProxy{
			Rewrite: func(pr *httputil.ProxyRequest) {
				pr.SetURL(u)
				pr.SetXForwarded()
			},
			Transport: &http.Transport{MaxIdleConns: 512, MaxIdleConnsPerHost: 512, DisableCompression: true},
		}
		if h = bare; role == "refusing" {
			h = refuseAnn(bare)
		}
	case "flooded service":
		h = http.HandlerFunc(serveFlooded)
	case "flood":
		return runFlood(os.Getenv(upstreamVar))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "msg=listening addr=%s\n", l.Addr())
	fmt.Fprintln(os.Stderr, http.Serve(l, h))
	return 1
}

const benchBody = `{"order":{"id":"4711","amount":1299,"currency":"EUR"},"customer":"c-8e03978e","note":"a body of the usual size for an API call"}`

func serveAnswer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/orders/4711")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, benchBody)
}

// actor starts this binary in a role that listens.
func actor(t testing.TB, role, upstream string) *proc {
	t.Helper()
	p := cast(t, role, upstream)
	p.waitLog(listening)
	p.Addr = listening.FindStringSubmatch(p.Log())[1]
	return p
}

// cast starts this binary in a role.
func cast(t testing.TB, role, upstream string, env ...string) *proc {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := []string{self}
	if role == "flood" {
		command = aside(self)
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(append(os.Environ(), roleVar+"="+role, upstreamVar+"="+upstream), env...)
	return launch(t, cmd)
}

// aside is a command that leaves a processor to the others. While the test measures, it
// leaves them the other one, too, as soon as they want it, as clients on other machines
// do. A tool that is missing or may not do this is left out.
func aside(program string) []string {
	command := []string{program}
	if tool, err := exec.LookPath("taskset"); err == nil && runtime.NumCPU() > 1 {
		command = append([]string{tool, "--cpu-list", "1"}, command...)
	}
	if tool, err := exec.LookPath("chrt"); err == nil && os.Getenv("SEMEL_EVIDENCE") != "" {
		command = append([]string{tool, "--idle", "0"}, command...)
	}
	return command
}

// load sends requests for a while, and returns how many were answered a
// second, and the processor time that the proxy took for each.
func load(t testing.TB, p *proc, tr *http.Transport, d time.Duration, key func() string) (rate float64, each time.Duration) {
	t.Helper()
	const clients = 32
	var n atomic.Int64
	var wg sync.WaitGroup
	before, begun := cpu(p), time.Now()
	for range clients {
		wg.Go(func() {
			for time.Since(begun) < d {
				r, err := post(t.Context(), tr, p.Addr, "/orders", key(), benchBody)
				if err != nil || r.status != http.StatusCreated || r.body != benchBody {
					t.Errorf("%+v, %v", r, err)
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	return float64(n.Load()) / took.Seconds(), (cpu(p) - before) / time.Duration(max(1, n.Load()))
}

// cpu is the processor time of a process, where /proc tells it.
func cpu(p *proc) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond // a hundred ticks a second
}

// The floor holds for the throughput through semel proxy, with the store in
// memory, compared with a bare httputil.ReverseProxy under the same load. The bare
// proxy sends each request to the service; a replay does not reach it. On a machine
// with other work the throughputs depend on who gets the processor, and only the
// processor time for each request can be compared.
const benchFloor = 0.95

func TestProxy_Throughput_AgainstBareReverseProxy(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") == "" {
		t.Skip("a benchmark of a minute; set SEMEL_TEST_COMPARE=1 to run it")
	}
	const rounds, each = 31, 250 * time.Millisecond // the records of longer ones would fill the memory
	service := "http://" + actor(t, "service", "").Addr
	bare := actor(t, "bare", service)
	semel := start(t, "--listen", "127.0.0.1:0", "--upstream", service, "--scope", "single", "--store", "memory:")
	limited := start(t, "--listen", "127.0.0.1:0", "--upstream", service, "--scope", "header:User-Agent", "--store", "memory:",
		"--tenant-keys", "100000000", "--max-keys", "100000000", "--tenant-bytes", "64GiB")
	tr := wire(t)
	var next atomic.Int64
	fresh := func() string { return "fresh-" + strconv.FormatInt(next.Add(1), 10) }
	again := func() string { return "again-" + strconv.FormatInt(next.Add(1)%64, 10) }
	type side struct {
		name   string
		p      *proc
		key    func() string
		rates  []float64
		ratios []float64
		cpu    []time.Duration
	}
	none := func() string { return "" }
	sides := []*side{
		{name: "bare httputil.ReverseProxy", p: bare, key: fresh}, {name: "semel proxy, no key", p: semel, key: none},
		{name: "semel proxy, new keys", p: semel, key: fresh}, {name: "semel proxy, replays", p: semel, key: again},
		{name: "all limits, no key", p: limited, key: none}, {name: "all limits, new keys", p: limited, key: fresh},
	}
	for range 64 { // each has its answer before two ask for it at once
		if r, err := post(t.Context(), tr, semel.Addr, "/orders", again(), benchBody); err != nil || r.status != http.StatusCreated {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	for _, s := range sides { // warm
		load(t, s.p, tr, each/2, s.key)
	}
	for round := range rounds {
		for i := range sides {
			s := sides[(i+round)%len(sides)] // each comes first as often
			rate, took := load(t, s.p, tr, each, s.key)
			s.rates, s.cpu = append(s.rates, rate), append(s.cpu, took)
		}
	}
	for _, s := range sides {
		for i := range rounds {
			s.ratios = append(s.ratios, s.rates[i]/sides[0].rates[i])
		}
		t.Logf("%-28s %7.0f requests/s, ratio %.2f, %v of the processor each (medians of %d rounds)",
			s.name, median(s.rates), median(s.ratios), median(s.cpu).Round(100*time.Nanosecond), rounds)
		if r := median(s.ratios); r < benchFloor {
			t.Errorf("%s: the ratio is %.2f, under the floor of %.2f", s.name, r, benchFloor)
		}
	}
}

func median[T float64 | time.Duration](list []T) T {
	s := slices.Sorted(slices.Values(list))
	return s[len(s)/2]
}
