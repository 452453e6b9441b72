package upstream_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The timeout limits the upstream. An upload without a key may take longer.
func TestUpload_SlowClient_NotUpstreamTimeout(t *testing.T) {
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return // it was cut off
		}
		if r.URL.Path == "/silent" {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, strconv.FormatInt(n, 10))
	})
	const limit, tries = 1500 * time.Millisecond, 5
	f := newFront(t, b.URL, nil, limit, nil)
	for path, want := range map[string]int{"/": http.StatusOK, "/silent": http.StatusGatewayTimeout} {
		for try := range tries {
			longest, err := uploadSlowly(f.URL+path, limit, want)
			if err == nil {
				break
			}
			if longest < limit/2 || try == tries-1 {
				t.Errorf("%s: %v; the longest pause was %v", path, err, longest)
				break
			}
			t.Logf("%s: %v after a pause of %v: the machine stood still, so this shows nothing", path, err, longest)
		}
	}
}

// uploadSlowly sends 14 parts with pauses of a tenth of a limit, and wants a status. A
// timeout must come after the end of the upload and the limit. It returns the longest pause.
func uploadSlowly(url string, limit time.Duration, want int) (longest time.Duration, err error) {
	body, feed := io.Pipe()
	sent := make(chan time.Duration, 1)
	go func() {
		longest, last := time.Duration(0), time.Now()
		for range 14 {
			<-time.After(limit / 10)
			_, err := io.WriteString(feed, "part")
			longest, last = max(longest, time.Since(last)), time.Now()
			if err != nil {
				break
			}
		}
		_ = feed.Close()
		sent <- longest
	}()
	defer func() {
		_ = body.Close()
		longest = <-sent
	}()
	req, err := http.NewRequest(http.MethodPut, url, body)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if res.StatusCode != want || want == http.StatusOK && (err != nil || string(got) != "56") {
		return 0, fmt.Errorf("%s, %q, %v", res.Status, got, err)
	}
	if took := time.Since(begin); took < 2*limit && want != http.StatusOK {
		return 0, fmt.Errorf("given up after %v", took)
	}
	return 0, nil
}

// The bytes after a broken body are not a request.
func TestUpload_BrokenBody_RestIsNoRequest(t *testing.T) {
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/smuggled" {
			t.Error("the rest of a body came as a request")
		}
		if r.URL.Path != "/early" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
	})
	f := newFront(t, b.URL, nil, time.Minute, nil)
	down := newFront(t, nobody, nil, time.Minute, nil)
	for _, body := range []string{"zz\r\n", "2\r\nabXX", "2\r\nab\r\n\r\n", "0\r\nbad trailer\r\n\r\n", "2;\r\r\nab\r\n"} {
		for _, to := range []struct {
			front *front
			path  string
		}{{f, "/"}, {f, "/early"}, {down, "/"}} {
			c, err := net.Dial("tcp", to.front.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(c, "PUT "+to.path+" HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"+body+smuggled)
			answers, _ := io.ReadAll(c) // the connection may be reset after the answer
			if n := strings.Count(string(answers), "HTTP/1.1 "); n > 1 {
				t.Errorf("%s, %q: %d answers:\n%s", to.path, body, n, answers)
			}
		}
	}
}

// A client that stops sending during an upload gets 408, which does not blame the
// upstream.
func TestUpload_ClientStopsSending_BodyTimeout(t *testing.T) {
	const limit = 500 * time.Millisecond
	b := backend(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	f := newFront(t, b.URL, nil, limit, nil)
	for _, framing := range []string{"Content-Length: 10\r\n\r\npart", "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n", "Content-Length: 10\r\nExpect: 100-continue\r\n\r\n"} {
		c, err := net.Dial("tcp", f.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(20 * limit)); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "PUT / HTTP/1.1\r\nHost: a\r\n"+framing)
		answers := bufio.NewReader(c)
		res, err := http.ReadResponse(answers, nil)
		for err == nil && res.StatusCode == http.StatusContinue {
			res, err = http.ReadResponse(answers, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := code(t, res); res.StatusCode != http.StatusRequestTimeout || got != "body_timeout" {
			t.Errorf("%s, %s", res.Status, got)
		}
		if _, err := answers.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("the connection goes on: %v", err)
		}
	}
}

// A client that sends a byte now and then must not hold a place for ever.
func TestUpload_Trickle_BodyTimeout(t *testing.T) {
	const limit = 500 * time.Millisecond
	b := backend(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	f := newFront(t, b.URL, nil, limit, nil)
	c, err := net.Dial("tcp", f.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
	go func() {
		for err := error(nil); err == nil; _, err = io.WriteString(c, ".") {
			<-time.After(limit / 10)
		}
	}()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := code(t, res); res.StatusCode != http.StatusRequestTimeout || got != "body_timeout" {
		t.Errorf("%s, %s", res.Status, got)
	}
}

// After the start of the answer nothing is limited, even if the upload goes on.
func TestUpload_AnswerHasBegun_NoLimit(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		_ = c.EnableFullDuplex()
		_, _ = io.ReadFull(r.Body, make([]byte, 4))
		_, _ = io.WriteString(w, "begun ")
		_ = c.Flush()
		rest, err := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, string(rest)+" "+strconv.FormatBool(err == nil))
	})
	f := newFront(t, b.URL, nil, limit, nil)
	body, feed := io.Pipe()
	defer body.Close()
	begun := make(chan struct{})
	go func() {
		defer feed.Close()
		_, _ = io.WriteString(feed, "part")
		select {
		case <-begun:
		case <-time.After(20 * limit): // it does not begin while something is to come
			return
		}
		_, _ = io.WriteString(feed, "more")
		<-time.After(3 * limit)
	}()
	req, err := http.NewRequest(http.MethodPut, f.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	first := make([]byte, len("begun "))
	if _, err := io.ReadFull(res.Body, first); err != nil {
		t.Fatal(err)
	}
	close(begun)
	if got, err := io.ReadAll(res.Body); err != nil || string(first)+string(got) != "begun more true" {
		t.Errorf("got %q, %v", got, err)
	}
}
