package semelhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/semelhttp"
)

// closeRecorder records whether it was closed.
type closeRecorder struct {
	io.Reader
	closed bool
}

func (c *closeRecorder) Close() error { c.closed = true; return nil }

func TestTransport_Bodies_AreRepeatable(t *testing.T) {
	big := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		body   io.Reader
		o      semelhttp.TransportOptions
		length int64
		want   string // empty: refused
	}{
		"streamed":            {strings.NewReader("hello"), semelhttp.TransportOptions{}, -1, "hello"},
		"of known length":     {strings.NewReader("hello"), semelhttp.TransportOptions{}, 5, "hello"},
		"at the limit":        {strings.NewReader(big), semelhttp.TransportOptions{MaxBody: 100}, -1, big},
		"over the limit":      {strings.NewReader(big + "x"), semelhttp.TransportOptions{MaxBody: 100}, -1, ""},
		"declared too large":  {strings.NewReader(big + "x"), semelhttp.TransportOptions{MaxBody: 100}, 101, ""},
		"unreadable":          {io.MultiReader(strings.NewReader("a"), broken{}), semelhttp.TransportOptions{}, -1, ""},
		"shorter than it is":  {strings.NewReader("hello"), semelhttp.TransportOptions{}, 6, ""},
		"longer than it is":   {strings.NewReader("hello"), semelhttp.TransportOptions{}, 4, ""},
		"declared, and empty": {strings.NewReader(""), semelhttp.TransportOptions{}, 1, ""},
		"one attempt":         {strings.NewReader(big + "x"), semelhttp.TransportOptions{MaxBody: 100, MaxAttempts: 1}, -1, big + "x"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scriptedServer{lines: []any{"503"}}
			body := &closeRecorder{Reader: c.body}
			r, _ := http.NewRequest(http.MethodPost, "http://example.com/", body)
			r.ContentLength = c.length
			_, err := newClient(t, s, &c.o).Do(r)
			if !body.closed {
				t.Errorf("%s: the body was not closed", name)
			}
			if c.want == "" {
				if err == nil || len(s.attempts) > 0 {
					t.Errorf("%s: %v after %d attempts", name, err, len(s.attempts))
				}
				if name == "over the limit" && !strings.Contains(err.Error(), "100 bytes") {
					t.Errorf("%s: the limit is not named: %v", name, err)
				}
				return
			}
			if want := max(c.o.MaxAttempts, 1); len(s.attempts) < want || err != nil {
				t.Errorf("%s: %d attempts, %v", name, len(s.attempts), err)
			}
			for i, a := range s.attempts {
				if a.body != c.want {
					t.Errorf("%s: attempt %d has %q", name, i, a.body)
				}
			}
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestTransport_GetBodyFails_EndsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedServer{lines: []any{"503"}}
		r, _ := http.NewRequest(http.MethodPost, "http://example.com/", strings.NewReader("hello"))
		r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("the file is gone") }
		if _, err := newClient(t, s, nil).Do(r); err == nil || len(s.attempts) != 1 || !strings.Contains(err.Error(), "the file is gone") {
			t.Errorf("%v after %d attempts", err, len(s.attempts))
		}
	})
}

func TestTransport_BodyNeverComes_EndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		body, writer := io.Pipe()
		s := &scriptedServer{lines: []any{"200"}}
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://example.com/", body)
		if _, err := newClient(t, s, nil).Do(r); !errors.Is(err, context.DeadlineExceeded) || len(s.attempts) > 0 {
			t.Errorf("%v after %d attempts", err, len(s.attempts))
		}
		if _, err := writer.Write([]byte("late")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the body was not closed: %v", err)
		}
	})
}
