package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"time"
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

// A request that net/http does not take is told from a service that is away, because it is
// refused again however often it is sent.
func TestRefused_OnlyWhatNetHTTPRefuses(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		value   string
		refused bool
	}{
		"line break in a header":          {t.Context(), "a\nb", true},
		"service is away":                 {t.Context(), "a", false},
		"caller has left":                 {ended, "a", false},
		"caller has left, and line break": {ended, "a\nb", false},
	} {
		r, err := http.NewRequestWithContext(c.ctx, http.MethodPost, closed.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-A", c.value)
		res, err := NewTransport(time.Second, nil).RoundTrip(r)
		if err == nil {
			_ = res.Body.Close()
		}
		if err == nil || !NotSent(err) || Refused(err) != c.refused {
			t.Errorf("%s: refused %v, not sent %v: %v", name, Refused(err), NotSent(err), err)
		}
	}
}
