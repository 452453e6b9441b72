package proxy

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/config"
)

// pipeListener accepts the connections of a channel, until it is closed.
type pipeListener chan net.Conn

func (l pipeListener) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l pipeListener) Close() error { close(l); return nil }

func (pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// The host stands still in the drain time, and goes on long after its end. The request in
// flight is given up only then, and still has the time to give its claim back.
func TestDrain_HostStandsStill_RequestsHaveTimeToSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Proxy{Parts: Parts{Config: &config.Config{Drain: time.Second}, Log: slog.New(slog.DiscardHandler)}}
		gaveUp, handled := make(chan struct{}), make(chan struct{})
		s := p.server(p.count(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			defer close(handled)
			<-gaveUp
			<-time.After(lateSettleTime)
			w.WriteHeader(http.StatusBadGateway)
		})))
		l := make(pipeListener)
		served := make(chan error)
		go func() { served <- s.Serve(l) }()
		client, server := net.Pipe()
		defer client.Close()
		l <- server
		if _, err := io.WriteString(client, "POST /pay HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		drained := make(chan error)
		go func() {
			drained <- p.drain(s, func() {
				<-time.After(time.Minute) // the host stands still
				close(gaveUp)
			})
		}()
		res, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil || res.StatusCode != http.StatusBadGateway {
			t.Errorf("the request got %+v, %v; want the answer of its handler", res, err)
		}
		if err := <-drained; err == nil || !strings.HasSuffix(err.Error(), "1 request still in flight after 1s given up; released or in doubt, as the policy says") {
			t.Errorf("the stop ends with %v", err)
		}
		<-served
		<-handled
	})
}
