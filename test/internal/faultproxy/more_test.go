package faultproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// ask sends a line and reads one.
func ask(t *testing.T, c net.Conn, in *bufio.Reader, line string) string {
	t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		t.Fatal(err)
	}
	got, err := in.ReadString('\n')
	if err != nil {
		t.Fatalf("%s: %v after %q", line, err, got)
	}
	return strings.TrimSpace(got)
}

func TestProxy_NoFault_AllPasses(t *testing.T) {
	s, p, c := between(t, Fault{})
	big := strings.Repeat("x", 3*pieceSize)
	in := bufio.NewReader(c)
	for _, line := range []string{"one", big, "two"} {
		if got := ask(t, c, in, line); got != "ok "+line {
			t.Fatalf("of %d bytes came back %d", len(line), len(got))
		}
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(in); err != nil || string(rest) != "bye\n" {
		t.Errorf("after the end of the requests: %q, %v", rest, err)
	}
	if heard := s.got(t, 1); heard != "one,"+big+",two" {
		t.Errorf("the server heard %d bytes", len(heard))
	}
	if p.Count(None) != 1 {
		t.Errorf("%d without a fault", p.Count(None))
	}
}

// Apply, then cut: the case that a caller cannot tell from a lost request.
func TestProxy_AnswerSwallowed_RequestCarriedOut(t *testing.T) {
	s, p, c := between(t, Fault{Kind: Swallow, After: len("ok first\n")})
	in := bufio.NewReader(c)
	if got := ask(t, c, in, "first"); got != "ok first" {
		t.Fatalf("before it strikes: %q", got)
	}
	got, err := say(c, "second\n")
	if err == nil || got != "" {
		t.Errorf("got %q, %v; want nothing but a reset", got, err)
	}
	if heard := s.got(t, 1); heard != "first,second" || p.Count(Swallow) != 1 {
		t.Errorf("the server heard %q; struck %d times", heard, p.Count(Swallow))
	}
}

func TestProxy_RequestDelayed_ArrivesAfterClientLeft(t *testing.T) {
	s, p, c := between(t, Fault{Kind: Delay, Delay: 30 * time.Millisecond})
	begin := time.Now()
	if got := ask(t, c, bufio.NewReader(c), "one"); got != "ok one" || time.Since(begin) < 60*time.Millisecond {
		t.Errorf("%q after %v, want both ways delayed", got, time.Since(begin))
	}
	if _, err := io.WriteString(c, "late\n"); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if heard := s.got(t, 1); heard != "one,late" || p.Count(Delay) != 1 {
		t.Errorf("the server heard %q; struck %d times", heard, p.Count(Delay))
	}
}

func TestProxy_HalfClosed_Answered(t *testing.T) {
	s, p, c := between(t, Fault{Kind: HalfClose, After: 6})
	in := bufio.NewReader(c)
	if got := ask(t, c, in, "one"); got != "ok one" {
		t.Fatal(got)
	}
	if got := ask(t, c, in, "two"); got != "bye" {
		t.Errorf("after the half close: %q, want what the server says to an end", got)
	}
	if heard := s.got(t, 1); heard != "one,tw…" || p.Count(HalfClose) != 1 {
		t.Errorf("the server heard %q; struck %d times", heard, p.Count(HalfClose))
	}
}

func TestProxy_Stalled_EndsWithClient(t *testing.T) {
	s, p, c := between(t, Fault{Kind: Stall, After: 4})
	if _, err := io.WriteString(c, "one\ntwo\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(30 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v; want silence", n, err)
	}
	_ = c.Close()
	if heard := s.got(t, 1); heard != "one" || p.Count(Stall) != 1 {
		t.Errorf("the server heard %q; struck %d times", heard, p.Count(Stall))
	}
}

func TestProxy_FaultNotReached_NotCounted(t *testing.T) {
	s, p, c := between(t, Fault{Kind: CutReply, After: 1000})
	if got := ask(t, c, bufio.NewReader(c), "one"); got != "ok one" {
		t.Error(got)
	}
	_ = c.Close()
	if s.got(t, 1); p.Count(CutReply) != 0 || p.Conns() != 1 {
		t.Errorf("struck %d times", p.Count(CutReply))
	}
}

func TestProxy_NoServer_Reset(t *testing.T) {
	p, err := New("127.0.0.1:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := say(c, "one\n"); err == nil || got != "" {
		t.Errorf("read %q, %v, want a reset", got, err)
	}
}

func TestProxy_Close_EndsAllConnections(t *testing.T) {
	before := runtime.NumGoroutine()
	for k := None; k < kinds; k++ {
		s, p, c := between(t, Fault{Kind: k, After: 1, Delay: time.Hour})
		_, _ = io.WriteString(c, "one\n")
		p.Close()
		p.Close()
		if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v: the connection is still open", k)
		}
		_ = c.Close()
		_ = s.ln.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.all.Wait()
		if _, err := net.Dial("tcp", p.Addr()); err == nil {
			t.Errorf("%v: it still listens", k)
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestChance_SameSeed_SameFaults(t *testing.T) {
	m := Mix{MaxAfter: 100}
	a, b, other := Chance(1, 0.3, m), Chance(1, 0.3, m), Chance(2, 0.3, m)
	const n = 10_000
	count := map[Kind]int{}
	differ := 0
	for i := range n {
		f := a(i)
		if f != b(i) {
			t.Fatalf("connection %d: one seed, two plans", i)
		}
		if f != other(i) {
			differ++
		}
		if f.After >= 100 || f.Delay >= 10*time.Millisecond {
			t.Fatalf("%+v", f)
		}
		count[f.Kind]++
	}
	if none := count[None]; none < n*65/100 || none > n*75/100 || len(count) != int(kinds) || differ == 0 {
		t.Errorf("%v", count)
	}
	for k := Refuse; k < kinds; k++ {
		if share := count[k]; share < n*3/100*8/10 || share > n*5/100*12/10 {
			t.Errorf("%v: %d of %d", k, share, n)
		}
	}
	if f := Chance(1, 1, Mix{Kinds: []Kind{Swallow}})(5); f.Kind != Swallow || f.After != 0 {
		t.Errorf("%+v", f)
	}
	if Swallow.String() != "swallow reply" || Kind(99).String() != "Kind(99)" {
		t.Error("names")
	}
}
