//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// flooder sends what one tenant could send to take all: large bodies, bodies that do
// not end, requests whose client hangs up, and requests for large answers.
type flooder struct {
	addr    string
	name    string // begins the keys
	client  *http.Client
	next    atomic.Int64
	refused atomic.Int64
	served  atomic.Int64
	refusal chan struct{} // holds a value after a request was refused
}

// The flood is in processes of its own, which run when nobody else wants the processor,
// because the test measures the proxy and not the flood's share of the processor.
const (
	floodVar     = "SEMEL_TEST_FLOOD"
	floodTimeVar = "SEMEL_TEST_FLOOD_TIME"
)

// floodSize has the number of clients of each kind, and the pause of each after a request.
// The clients that fetch large answers make no pause.
type floodSize struct {
	Bodies, Unfinished, HangUps, Answers int
	Back                                 time.Duration
}

// split is the part of one of n processes.
func (s floodSize) split(n int) floodSize {
	return floodSize{s.Bodies / n, s.Unfinished / n, s.HangUps / n, s.Answers / n, s.Back}
}

var flooded = regexp.MustCompile(`msg=flooded served=(\d+) refused=(\d+)`)

// runFlood floods an address, and prints the counts.
func runFlood(addr string) int {
	var size floodSize
	err := json.Unmarshal([]byte(os.Getenv(floodVar)), &size)
	d, derr := time.ParseDuration(os.Getenv(floodTimeVar))
	if err := errors.Join(err, derr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), d+time.Minute)
	defer cancel()
	f := &flooder{addr: addr, name: strconv.Itoa(os.Getpid()), refusal: make(chan struct{}, 1),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}}
	time.AfterFunc(d, func() { // on a slow machine it goes on until a limit has refused something
		select {
		case <-f.refusal:
		case <-ctx.Done():
		}
		cancel()
	})
	f.run(ctx, size)
	fmt.Fprintf(os.Stderr, "msg=flooded served=%d refused=%d\n", f.served.Load(), f.refused.Load())
	return 0
}

func (f *flooder) run(ctx context.Context, size floodSize) {
	var all sync.WaitGroup
	defer all.Wait()
	clients := func(n int, back time.Duration, send func()) {
		for range n {
			all.Go(func() {
				for ctx.Err() == nil {
					send()
					select {
					case <-time.After(back):
					case <-ctx.Done():
					}
				}
			})
		}
	}
	large := bytes.Repeat([]byte("x"), 9<<20)
	clients(size.Bodies, size.Back, func() {
		f.post(ctx, io.MultiReader(strings.NewReader(`{"text":"`), bytes.NewReader(large), strings.NewReader(fmt.Sprintf(`","id":%s%d}`, f.name, f.next.Add(1)))), "")
	})
	clients(size.Unfinished, size.Back, func() { f.unfinished(ctx, large) })
	clients(size.HangUps, size.Back, func() {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		f.post(short, strings.NewReader("hang up"), fmt.Sprint("h", f.name, "-", f.next.Add(1)))
		cancel()
	})
	clients(size.Answers, 0, func() { f.post(ctx, strings.NewReader("large answer"), fmt.Sprint("l", f.name, "-", f.next.Add(1))) })
}

func (f *flooder) post(ctx context.Context, body io.Reader, key string) {
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+f.addr+"/pay", body)
	if err != nil {
		return
	}
	r.Header.Set("X-Account", "ann")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := f.client.Do(r)
	if err != nil {
		return // refused in the middle of a body, or hung up
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	switch res.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		f.refused.Add(1)
		select {
		case f.refusal <- struct{}{}:
		default:
		}
	default:
		f.served.Add(1)
	}
}

// unfinished sends a part of a body, and holds the connection.
func (f *flooder) unfinished(ctx context.Context, large []byte) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", f.addr)
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = fmt.Fprintf(c, "POST /pay HTTP/1.1\r\nHost: a\r\nX-Account: ann\r\nIdempotency-Key: u%s-%d\r\nContent-Length: %d\r\n\r\n", f.name, f.next.Add(1), len(large)+1)
	if _, err := c.Write(large); err != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	_, _ = c.Read(make([]byte, 1))
}
