//go:build unix

package semelhttp_test

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// go test -run TestLoad -load 1s -v
var (
	loadFor    = flag.Duration("load", 0, "how long each round of TestLoad lasts; 0: skip it")
	loadOnly   = flag.String("loadonly", "", "run only this of bare, new keys, duplicates: for profiles")
	loadRounds = flag.Int("loadrounds", 5, "how many rounds TestLoad takes the median of")
)

// TestLoad compares a bare and a protected handler over loopback: requests a second
// and processor time, in alternating rounds. Client and server share the process, so
// the time of both counts. If other processes are busy, compare the processor times
// and not the rates.
func TestLoad(t *testing.T) {
	if *loadFor == 0 {
		t.Skip("a measurement: run it with -load 1s")
	}
	const conns = 64
	var next atomic.Uint64
	newKey := func(b []byte) []byte {
		return strconv.AppendUint(append(b, "8e03978e-40d5-43dd-bc93-"...), next.Add(1), 10)
	}
	oneKey := func(b []byte) []byte { return append(b, "8e03978e-40d5-43dd-bc93-6894a57f9324"...) }
	runs := []struct {
		name string
		wrap func(http.Handler) http.Handler
		key  func([]byte) []byte
		rate []float64
		cpu  []float64 // µs a request
	}{
		{name: "bare", wrap: func(h http.Handler) http.Handler { return h }, key: newKey},
		{name: "new keys", wrap: func(h http.Handler) http.Handler { return protected(t, h, nil) }, key: newKey},
		{name: "duplicates", wrap: func(h http.Handler) http.Handler { return protected(t, h, nil) }, key: oneKey},
	}
	for range *loadRounds {
		for i := range runs {
			r := &runs[i]
			if *loadOnly != "" && *loadOnly != r.name {
				continue
			}
			rate, cpu := load(t, r.wrap(http.HandlerFunc(pay)), conns, *loadFor, r.key)
			r.rate, r.cpu = append(r.rate, rate), append(r.cpu, cpu)
		}
	}
	if *loadOnly != "" {
		return
	}
	bare := &runs[0]
	for i := range runs {
		r := &runs[i]
		byRate, byTime := make([]float64, len(r.rate)), make([]float64, len(r.rate))
		for n := range r.rate {
			byRate[n], byTime[n] = r.rate[n]/bare.rate[n], bare.cpu[n]/r.cpu[n]
		}
		t.Logf("%-10s %8.0f requests/s, %6.2f µs of processor time each; against bare in the same round %.3f by rate, %.3f by time",
			r.name, median(r.rate), median(r.cpu), median(byRate), median(byTime))
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// cpuTime is the processor time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// load measures conns clients that each wait for an answer before the next request:
// requests a second, and microseconds of processor time for each request.
func load(t *testing.T, h http.Handler, conns int, d time.Duration, key func([]byte) []byte) (rate, cpu float64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	go func() { _ = srv.Serve(l) }() // ends with Close
	defer srv.Close()
	// Record the answer of the duplicates' key before they start.
	if _, err := client(l.Addr().String(), time.Now().Add(time.Millisecond), key); err != nil {
		t.Fatal(err)
	}
	var total atomic.Int64
	var wg sync.WaitGroup
	runtime.GC()
	start, used := time.Now(), cpuTime()
	for range conns {
		wg.Go(func() {
			n, err := client(l.Addr().String(), start.Add(d), key)
			if err != nil {
				t.Error(err)
			}
			total.Add(n)
		})
	}
	wg.Wait()
	n := float64(total.Load())
	return n / time.Since(start).Seconds(), float64((cpuTime() - used).Nanoseconds()) / 1000 / n
}

var contentLength = []byte("Content-Length: ")

// client is a cheap HTTP client. It cannot read chunked answers.
func client(addr string, until time.Time, key func([]byte) []byte) (n int64, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	head := fmt.Appendf(nil, "POST /payments HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\nIdempotency-Key: ", len(payment))
	in, out := bufio.NewReader(c), make([]byte, 0, 512)
	for ; time.Now().Before(until); n++ {
		out = append(key(append(out[:0], head...)), "\r\n\r\n"...)
		if _, err := c.Write(append(out, payment...)); err != nil {
			return n, err
		}
		size := 0
		for i := 0; ; i++ {
			line, err := in.ReadSlice('\n')
			if err != nil {
				return n, err
			}
			if i == 0 && !bytes.HasPrefix(line, []byte("HTTP/1.1 201")) {
				return n, fmt.Errorf("answer %q", line)
			}
			if v, ok := bytes.CutPrefix(line, contentLength); ok {
				size, _ = strconv.Atoi(string(bytes.TrimSpace(v)))
			}
			if len(line) == 2 {
				break
			}
		}
		if _, err := io.CopyN(io.Discard, in, int64(size)); err != nil {
			return n, err
		}
	}
	return n, nil
}
