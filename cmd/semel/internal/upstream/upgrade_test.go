package upstream_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// After a protocol switch the proxy copies bytes in both directions, without a
// limit.
func TestUpgrade_ConnectionPassedThrough(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	b := backend(t, func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nSemel-Outcome: unknown\r\n\r\n")
		_, _ = io.Copy(c, rw)
	})
	f := newFront(t, b.URL, nil, limit, nil)
	c, err := net.Dial("tcp", f.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(c)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	res, err := http.ReadResponse(answers, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Semel-Outcome") != "" || res.Header.Get("Content-Type") != "" {
		t.Fatalf("%+v, %v", res, err)
	}
	for i := range 2 {
		_, _ = fmt.Fprintln(c, "line", i)
		if line, err := answers.ReadString('\n'); err != nil || line != fmt.Sprintln("line", i) {
			t.Errorf("%q, %v", line, err)
		}
		<-time.After(2 * limit)
	}
}
