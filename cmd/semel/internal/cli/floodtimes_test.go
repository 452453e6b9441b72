//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// quietTimes are how long the requests of a tenant took that sends one after the
// other, in all and by their parts. They are sorted.
type quietTimes struct {
	all, before, after []time.Duration
	unavailable        int // answers that the store was not available
}

func p99(times []time.Duration) time.Duration {
	return times[len(times)*99/100].Round(10 * time.Microsecond)
}

func (q *quietTimes) String() string {
	return fmt.Sprintf("%d requests, p50 %v, p99 %v (to the service %v, back %v)",
		len(q.all), q.all[len(q.all)/2].Round(10*time.Microsecond), p99(q.all), p99(q.before), p99(q.after))
}

// quiet sends requests of bob, until the time is over and ended is closed.
func quiet(t *testing.T, addr string, next *atomic.Int64, d time.Duration, ended <-chan struct{}) *quietTimes {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	q := &quietTimes{}
	for begun, over := time.Now(), false; !over || len(q.all) < 10; {
		r, err := http.NewRequest(http.MethodPost, "http://"+addr+"/pay", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Account", "bob")
		r.Header.Set("Idempotency-Key", fmt.Sprint("b", next.Add(1)))
		sent := time.Now()
		res, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != http.StatusOK {
			answer, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			// No limit refuses like this: the machine is so busy that the store has not
			// answered in time.
			if res.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(answer), "store_unavailable") && q.unavailable < 20 {
				q.unavailable++
				continue
			}
			t.Fatalf("the other tenant gets %s, %v: %s", res.Status, res.Header, answer)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		came, err := strconv.ParseInt(res.Header.Get("Last-Modified"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		q.all = append(q.all, time.Since(sent))
		q.before, q.after = append(q.before, time.Unix(0, came).Sub(sent)), append(q.after, time.Since(time.Unix(0, came)))
		if over = time.Since(begun) >= d; over && ended != nil {
			select {
			case <-ended:
			default:
				over = false
			}
		}
	}
	for _, times := range [][]time.Duration{q.all, q.before, q.after} {
		slices.Sort(times)
	}
	return q
}

// floodTimes are the times of the other tenant, and how long the proxy ran and waited for a
// processor beside the flood.
type floodTimes struct {
	alone, beside   *quietTimes
	served, refused int // of the flood
	ran, waited     time.Duration
}

// ratio is how many times as long the other tenant's p99 is beside the flood.
func (f *floodTimes) ratio() float64 { return float64(p99(f.beside.all)) / float64(p99(f.alone.all)) }

// percentiles are the other tenant's p99.
func (f *floodTimes) percentiles() string {
	return fmt.Sprintf("p99 of the other tenant %v alone, %v beside the flood", p99(f.alone.all), p99(f.beside.all))
}

func (f *floodTimes) String() string {
	return fmt.Sprintf("alone: %v; beside the flood: %v; of the flood %d served, %d refused; the proxy ran %v and waited for a processor %v",
		f.alone, f.beside, f.served, f.refused, f.ran.Round(time.Millisecond), f.waited.Round(time.Millisecond))
}

// besideFlood measures a proxy without a flood, and then with one of several processes.
func besideFlood(t *testing.T, p *proc, size floodSize, processes int, idle, flood time.Duration) *floodTimes {
	t.Helper()
	var next atomic.Int64
	f := &floodTimes{alone: quiet(t, p.Addr, &next, idle, nil)}
	ranBefore, waitedBefore := schedule(p)
	var floods []*proc
	ended := make(chan struct{})
	part, err := json.Marshal(size.split(processes))
	if err != nil {
		t.Fatal(err)
	}
	for range processes {
		floods = append(floods, cast(t, "flood", p.Addr, floodVar+"="+string(part), floodTimeVar+"="+flood.String()))
	}
	go func() {
		defer close(ended)
		for _, f := range floods {
			<-f.done
		}
	}()
	f.beside = quiet(t, p.Addr, &next, flood, ended)
	f.ran, f.waited = schedule(p)
	f.ran, f.waited = f.ran-ranBefore, f.waited-waitedBefore
	for _, process := range floods {
		m := flooded.FindStringSubmatch(process.Log())
		if m == nil {
			t.Fatalf("the flood said %s", process.Log())
		}
		served, _ := strconv.Atoi(m[1])
		refused, _ := strconv.Atoi(m[2])
		f.served, f.refused = f.served+served, f.refused+refused
	}
	return f
}

// schedule is how long the threads of a process have run, and how long they have waited
// for a processor, where /proc tells it.
func schedule(p *proc) (ran, waited time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		var r, w int64
		if _, err := fmt.Sscan(string(b), &r, &w); err == nil {
			ran, waited = ran+time.Duration(r), waited+time.Duration(w)
		}
	}
	return ran, waited
}
