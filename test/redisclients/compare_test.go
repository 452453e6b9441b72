//go:build unix

package redisclients

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/store/redisstore/redistest"
)

// measured is the result of a run: operations per second, and the CPU time of this
// process, without the server's, per operation.
type measured struct {
	rate     float64
	p50, p99 time.Duration
	cpu      time.Duration
}

// measure runs do by g goroutines, n operations at a time, for d.
func measure(t *testing.T, g, n int, d time.Duration, do func(id string) error) measured {
	t.Helper()
	took := make([][]time.Duration, g)
	var all sync.WaitGroup
	before, start := cpu(t), time.Now()
	for w := range g {
		all.Go(func() {
			for i := 0; time.Since(start) < d; i++ {
				at := time.Now()
				if err := do(fmt.Sprint(w, "/", i)); err != nil {
					t.Error(err)
					return
				}
				took[w] = append(took[w], time.Since(at))
			}
		})
	}
	all.Wait()
	every := slices.Sorted(slices.Values(slices.Concat(took...)))
	if len(every) == 0 {
		t.FailNow()
	}
	ops := len(every) * n
	return measured{float64(ops) / time.Since(start).Seconds(), every[len(every)/2], every[len(every)*99/100], (cpu(t) - before) / time.Duration(ops)}
}

func cpu(t *testing.T) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestCompareClients measures the clients in turns, if SEMEL_TEST_COMPARE is 1.
func TestCompareClients(t *testing.T) {
	if os.Getenv("SEMEL_TEST_COMPARE") != "1" {
		t.Skip("a measurement: set SEMEL_TEST_COMPARE=1")
	}
	srv := redistest.Start(t, redistest.Fast...)
	cs := clients(t, srv)
	const rounds, d = 3, 600 * time.Millisecond
	turns := func(what string, g, n int, do func(c client, id string) error) {
		got := map[string][]measured{}
		for round := range rounds {
			for _, name := range []string{"go-redis", "rueidis"} {
				got[name] = append(got[name], measure(t, g, n, d, func(id string) error {
					return do(cs[name], fmt.Sprint(what, g, n, name, round, id))
				}))
			}
		}
		for _, name := range []string{"go-redis", "rueidis"} {
			m := median(got[name])
			t.Logf("%-9s %4d goroutines  %-15s %8.0f/s  %5.2fx  p50 %v  p99 %v  client's CPU %v", what, g, name, m.rate, m.rate/median(got["go-redis"]).rate,
				m.p50.Round(time.Microsecond), m.p99.Round(time.Microsecond), m.cpu.Round(100*time.Nanosecond))
		}
	}
	for _, g := range []int{16, 64, 256} {
		turns("published", g, 1, func(c client, id string) error { return c.once(context.Background(), id) })
		if rate := benchmark(t, srv, g); rate > 0 {
			t.Logf("%-9s %4d connections %-15s %8.0f/s", "published", g, "redis-benchmark", rate)
		}
	}
	for _, n := range []int{1, 4, 16, 64} { // like the store: two concurrent round trips, of n records each
		turns(fmt.Sprint("batch ", n), 2, n, func(c client, id string) error {
			keys := make([]string, n)
			for i := range keys {
				keys[i] = id + "/" + strconv.Itoa(i)
			}
			return c.batch(context.Background(), keys)
		})
	}
}

// median is the run with the rate in the middle.
func median(ms []measured) measured {
	ms = slices.SortedFunc(slices.Values(ms), func(a, b measured) int { return int(a.rate - b.rate) })
	return ms[len(ms)/2]
}

// benchmark is how many operations a second redis-benchmark does with the same
// commands, each by itself, which no client that awaits answers can exceed by
// much; 0 if the program is not there. The look finds nothing, as there.
func benchmark(t *testing.T, srv *redistest.Server, connections int) float64 {
	t.Helper()
	bin, err := redistest.Bin()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(filepath.Dir(bin), strings.Replace(filepath.Base(bin), "-server", "-benchmark", 1))
	if _, err := exec.LookPath(program); err != nil {
		t.Logf("no %s", program)
		return 0
	}
	seconds := 0.0 // for one operation
	key := fmt.Sprint("bench", connections, ":__rand_int__")
	for _, command := range [][]string{
		{"SET", key + ":lock", "1", "EX", "30", "NX"}, {"GET", key}, {"SET", key, strings.Repeat("x", len(result)), "EX", "86400"}, {"DEL", key + ":lock"},
	} {
		args := append([]string{"-p", strconv.Itoa(srv.Port()), "-c", strconv.Itoa(connections), "-n", "40000", "-r", "1000000000", "--csv"}, command...)
		out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		fields := strings.Split(lines[len(lines)-1], `","`)
		rate, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		seconds += 1 / rate
	}
	return 1 / seconds
}
