//go:build unix

package cli

import (
	"bytes"
	"context"
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
	floodClientsVar = "SEMEL_TEST_FLOOD_CLIENTS"
	floodTimeVar    = "SEMEL_TEST_FLOOD_TIME"
)

var flooded = regexp.MustCompile(`msg=flooded served=(\d+) refused=(\d+)`)

// runFlood floods an address, and prints the counts.
func runFlood(addr string) int {
	clients, err := strconv.Atoi(os.Getenv(floodClientsVar))
	d, derr := time.ParseDuration(os.Getenv(floodTimeVar))
	if err := errors.Join(err, derr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), d+time.Minute)
	defer cancel()
	f := &flooder{addr: addr, name: strconv.Itoa(os.Getpid()), refusal: make(chan struct{}, 1),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}}
	time.AfterFunc(d, func() { // on a slow machine it goes on until a limit has refused something
		select {
		case <-f.refusal:
		case <-ctx.Done():
		}
		cancel()
	})
	f.run(ctx, clients)
	fmt.Fprintf(os.Stderr, "msg=flooded served=%d refused=%d\n", f.served.Load(), f.refused.Load())
	return 0
}

func (f *flooder) run(ctx context.Context, clients int) {
	var all sync.WaitGroup
	defer all.Wait()
	large := bytes.Repeat([]byte("x"), 9<<20)
	for i := range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				switch i % 4 {
				case 0:
					f.post(ctx, io.MultiReader(strings.NewReader(`{"text":"`), bytes.NewReader(large), strings.NewReader(fmt.Sprintf(`","id":%s%d}`, f.name, f.next.Add(1)))), "")
				case 1:
					f.unfinished(ctx, large)
				case 2:
					short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
					f.post(short, strings.NewReader("hang up"), fmt.Sprint("h", f.name, "-", f.next.Add(1)))
					cancel()
				default:
					f.post(ctx, strings.NewReader("large answer"), fmt.Sprint("l", f.name, "-", f.next.Add(1)))
				}
			}
		})
	}
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
