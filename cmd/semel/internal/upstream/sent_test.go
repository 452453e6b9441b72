package upstream

import (
	"errors"
	"net"
	"net/http/httptrace"
	"testing"
)

// pipe is a conn whose other end reads all.
func pipe(t *testing.T) *conn {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	go func() {
		for buf := make([]byte, 64); ; {
			if _, err := b.Read(buf); err != nil {
				return
			}
		}
	}()
	return &conn{Conn: a}
}

func TestNotSent_EarlierWrites_NotCounted(t *testing.T) {
	c := pipe(t)
	if _, err := c.Write([]byte("an earlier request")); err != nil {
		t.Fatal(err)
	}
	var s transmission
	s.gotConn(httptrace.GotConnInfo{Conn: c, Reused: true})
	if !s.notSent() {
		t.Error("an earlier request's bytes are taken for this one's")
	}
	if n, err := c.Write([]byte("late")); n != 0 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("after it was said that nothing is sent: %d, %v", n, err)
	}
}

func TestNotSent_OneByteWritten_False(t *testing.T) {
	c := pipe(t)
	var s transmission
	s.gotConn(httptrace.GotConnInfo{Conn: c})
	if _, err := c.Write([]byte("P")); err != nil {
		t.Fatal(err)
	}
	if s.notSent() {
		t.Error("a byte was sent")
	}
}

func TestNotSent_NoConnection_True(t *testing.T) {
	var s transmission
	if !s.notSent() {
		t.Error("there was no connection to send on")
	}
}

func TestNotSent_ForeignConnection_False(t *testing.T) {
	var s transmission
	s.gotConn(httptrace.GotConnInfo{Conn: pipe(t).Conn})
	if s.notSent() {
		t.Error("nobody has counted, and yet nothing is said to be sent")
	}
}

func TestNotSent_SentOnEarlierConnection_False(t *testing.T) {
	for _, sent := range []bool{true, false} {
		first, second := pipe(t), pipe(t)
		var s transmission
		s.gotConn(httptrace.GotConnInfo{Conn: first, Reused: true})
		if sent {
			if _, err := first.Write([]byte("P")); err != nil {
				t.Fatal(err)
			}
		}
		s.gotConn(httptrace.GotConnInfo{Conn: second})
		if s.notSent() == sent {
			t.Errorf("sent %v, told %v", sent, !sent)
		}
		for _, c := range []*conn{first, second} {
			if n, err := c.Write([]byte("late")); n != 0 || !errors.Is(err, net.ErrClosed) {
				t.Errorf("after it was given up: %d, %v", n, err)
			}
		}
	}
}
