package faultproxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// lines is a server that answers each line with "ok " and the line, and keeps the
// lines.
type lines struct {
	ln  net.Listener
	all sync.WaitGroup

	mu    sync.Mutex
	heard []string // lines; a line without its end has a "…"
	conns []net.Conn
	ended int
}

func serve(t *testing.T) *lines {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &lines{ln: ln}
	s.all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, c)
			s.mu.Unlock()
			s.all.Go(func() { s.talk(c) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.all.Wait()
	})
	return s
}

func (s *lines) talk(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		text, err := in.ReadString('\n')
		s.mu.Lock()
		switch {
		case err == nil:
			s.heard = append(s.heard, strings.TrimSpace(text))
		case text != "":
			s.heard = append(s.heard, text+"…")
		}
		if err != nil {
			s.ended++
		}
		s.mu.Unlock()
		if err != nil {
			if errors.Is(err, io.EOF) {
				fmt.Fprint(c, "bye\n")
			}
			return
		}
		fmt.Fprint(c, "ok "+text)
	}
}

// got waits until the server has seen the ends of n connections, and is what
// it was sent.
func (s *lines) got(t *testing.T, ends int) string {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		s.mu.Lock()
		heard, ended := strings.Join(s.heard, ","), s.ended
		s.mu.Unlock()
		if ended >= ends {
			return heard
		}
		if time.Now().After(end) {
			t.Fatalf("the server has seen %d connections end, not %d; it heard %q", ended, ends, heard)
		}
	}
}

// between is a proxy to a fresh server, whose every connection has the fault.
func between(t *testing.T, f Fault) (*lines, *Proxy, net.Conn) {
	t.Helper()
	s := serve(t)
	p, err := New(s.ln.Addr().String(), func(int) Fault { return f })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return s, p, c
}

// say sends text and reads to the end.
func say(c net.Conn, text string) (string, error) {
	_, werr := io.WriteString(c, text)
	b, rerr := io.ReadAll(c)
	return string(b), errors.Join(werr, rerr)
}

func TestProxy_EachFault_HasItsEffect(t *testing.T) {
	for name, c := range map[string]struct {
		fault   Fault
		server  string // the lines that it gets
		client  string // the text that it reads until an error
		refused bool   // the server sees no connection
	}{
		"refuse":                    {fault: Fault{Kind: Refuse}, refused: true},
		"cut at the first byte":     {fault: Fault{Kind: CutRequest}},
		"cut in the first line":     {fault: Fault{Kind: CutRequest, After: 2}, server: "on…"},
		"cut in the second line":    {fault: Fault{Kind: CutRequest, After: 5}, server: "one,t…", client: "ok one\n"},
		"reply cut at once":         {fault: Fault{Kind: CutReply}, server: "one,two"},
		"reply cut in the middle":   {fault: Fault{Kind: CutReply, After: 4}, server: "one,two", client: "ok o"},
		"reply swallowed":           {fault: Fault{Kind: Swallow}, server: "one,two"},
		"the second reply is lost":  {fault: Fault{Kind: CutReply, After: 7}, server: "one,two", client: "ok one\n"},
		"a longer limit is no harm": {fault: Fault{Kind: Swallow, After: 7}, server: "one,two", client: "ok one\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, conn := between(t, c.fault)
			got, err := say(conn, "one\ntwo\n")
			if err == nil {
				t.Errorf("the connection ended in peace; read %q", got)
			}
			if c.refused {
				if heard := s.got(t, 0); heard != "" || len(s.conns) != 0 {
					t.Errorf("the server heard %q on %d connections", heard, len(s.conns))
				}
			} else if heard := s.got(t, 1); !strings.HasPrefix(c.server+"…", strings.TrimSuffix(heard, "…")) {
				t.Errorf("the server heard %q, want %q or, after a reset, a part", heard, c.server)
			}
			// A reset may take with it what the client had not read yet.
			if !strings.HasPrefix(c.client, got) {
				t.Errorf("the client read %q, want %q or a part", got, c.client)
			}
			if p.Count(c.fault.Kind) != 1 || p.Conns() != 1 || p.Count(None) != 0 {
				t.Errorf("struck %d times on %d connections", p.Count(c.fault.Kind), p.Conns())
			}
		})
	}
}
