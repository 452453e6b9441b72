//go:build unix

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// floodMemory is the most memory that the proxy may ever have in use.
const floodMemory = 300 << 20

// peakMemory is the most memory that a process has had, where /proc tells it.
func peakMemory(p *proc) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(m[1]), 10, 64)
	return n << 10
}

// serveFlooded answers ann, who floods, slowly and with much. It tells all callers when
// the request came.
func serveFlooded(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Last-Modified", strconv.FormatInt(time.Now().UnixNano(), 10))
	_, _ = io.Copy(io.Discard, r.Body)
	if r.Header.Get("X-Account") == "ann" {
		<-time.After(50 * time.Millisecond) // so that requests are in flight together
		_, _ = w.Write(make([]byte, 1<<20-1))
	}
}

// refuseAnn refuses all that ann sends, who floods. It is the least that a proxy can do.
func refuseAnn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Account") == "ann" {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// One tenant floods the proxy. Another one is served all the time, the limits refuse,
// and the memory stays bounded.
//
// The measurement compares the 99th percentiles of the other tenant. The one beside the
// flood may be twice the one alone. It needs a machine on which the proxy has a processor
// when it wants one. For that reason the flood runs only when nobody else wants the
// processor, and on one processor alone. If the proxy's threads waited for a processor longer
// than they ran, the test does not compare. The control is a proxy that does nothing but
// refuse the flood: its percentiles tell how much of the time is the machine's.
//
// The flood of a report is the one that took a proxy without limits: 30 bodies of 9 MiB, 150
// bodies that do not end, 1,500 clients in 15 seconds that hang up, and 4 connections that
// fetch all they can. The other flood is all that 400 clients can send on this machine. With
// two processors for all, the comparison fails beside it.
func TestProxy_OneTenantFloods_OthersServed(t *testing.T) {
	if os.Getenv("SEMEL_EVIDENCE") == "" {
		oneTenantFloods(t, "", floodSize{4, 4, 4, 4, 0}, 1, 200*time.Millisecond, time.Second)
		return
	}
	for name, size := range map[string]floodSize{
		"the flood of a report": {30, 150, 100, 4, 980 * time.Millisecond},
		"400 clients":           {100, 100, 100, 100, 0},
	} {
		t.Run(name, func(t *testing.T) { oneTenantFloods(t, name, size, 2, 5*time.Second, 20*time.Second) })
	}
}

// oneTenantFloods floods a proxy. If the flood has a name, it floods a proxy that only
// refuses, too, and compares.
func oneTenantFloods(t *testing.T, name string, size floodSize, processes int, idle, flood time.Duration) {
	t.Helper()
	measure := name != ""
	service := actor(t, "flooded service", "")
	p := start(t, "--listen", "127.0.0.1:0", "--upstream", "http://"+service.Addr, "--scope", "header:X-Account", "--key-from", "id",
		"--store", "sqlite:"+filepath.Join(t.TempDir(), "semel.db"))
	f := besideFlood(t, p, size, processes, idle, flood)
	memory := peakMemory(p)
	t.Logf("%v; peak memory %d MiB", f, memory>>20)
	if f.refused == 0 {
		t.Error("no limit refused anything")
	}
	if n := f.alone.unavailable + f.beside.unavailable; n > 0 {
		t.Logf("the store was not available for %d requests of the other tenant", n)
		if measure && f.waited <= f.ran {
			t.Error("and the machine had no other work")
		}
	}
	if memory > floodMemory && !raceEnabled {
		t.Errorf("the proxy took %d MiB of memory", memory>>20)
	}
	detail := fmt.Sprintf("%d MiB; %d requests of the flood were served and %d refused; %s", memory>>20, f.served, f.refused, f.percentiles())
	var control *floodTimes
	if measure {
		p.kill()
		control = besideFlood(t, actor(t, "refusing", "http://"+service.Addr), size, processes, idle, flood)
		t.Logf("a proxy that does nothing but refuse the flood: %v", control)
		detail += "; behind a proxy that only refuses the flood: " + control.percentiles()
	}
	reportFlood(t, "while one tenant floods the proxy ("+cmp.Or(name, "16 clients")+"), another is served, and the proxy takes at most 300 MiB",
		len(f.beside.all), memory > floodMemory, detail)
	switch {
	case !measure:
	case f.waited > f.ran:
		t.Log("NOT COMPARED: the machine has too much other work")
	default:
		reportFlood(t, "beside a flood ("+name+"), another tenant's p99 is below twice its own alone", len(f.beside.all), f.ratio() > 2, f.percentiles())
		if f.ratio() > 2 {
			t.Errorf("the other tenant's p99 is %.2f times as long, and %.2f times behind a proxy that only refuses", f.ratio(), control.ratio())
		}
	}
}

// reportFlood prints a line for the page of evidence.
func reportFlood(t *testing.T, claim string, trials int, failed bool, detail string) {
	t.Helper()
	failures := 0
	if failed {
		failures = 1
	}
	if text, err := json.Marshal(map[string]any{"claim": claim, "where": "semel proxy, sqlite", "trials": trials, "failures": failures, "detail": detail}); err == nil {
		t.Logf("evidence: %s", text)
	}
}
