package semelhttp_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/semelhttp"
)

// attempt is a request that the scripted server got.
type attempt struct {
	key  []string
	body string
	at   time.Duration // since the start
	err  error
}

// scriptedServer is a base RoundTripper that answers with its lines: a status with
// headers ("503 Retry-After: 2"), or an error. It repeats the last line.
type scriptedServer struct {
	mu       sync.Mutex
	lines    []any
	start    time.Time
	attempts []attempt
	closed   int // closed response bodies
}

func (s *scriptedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := attempt{key: r.Header["Idempotency-Key"], at: time.Since(s.start)}
	if r.Body != nil {
		var b []byte
		b, a.err = io.ReadAll(r.Body)
		a.body = string(b)
		_ = r.Body.Close()
	}
	line := s.lines[min(len(s.attempts), len(s.lines)-1)]
	s.attempts = append(s.attempts, a)
	if err, ok := line.(error); ok {
		return nil, err
	}
	head, body, _ := strings.Cut(line.(string), "\n")
	status, headers, _ := strings.Cut(head, " ")
	resp := &http.Response{Header: http.Header{}, Request: r, Body: &closeCounter{strings.NewReader(body), s}}
	_, _ = fmt.Sscan(status, &resp.StatusCode)
	for h := range strings.SplitSeq(headers, "; ") {
		if name, value, ok := strings.Cut(h, ": "); ok {
			resp.Header.Set(name, value)
		}
	}
	return resp, nil
}

type closeCounter struct {
	io.Reader
	s *scriptedServer
}

func (c *closeCounter) Close() error { c.s.closed++; return nil }

func newClient(t testing.TB, base http.RoundTripper, o *semelhttp.TransportOptions) *http.Client {
	t.Helper()
	tr, err := semelhttp.NewTransport(base, o)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: tr}
}

// sendScripted sends one POST with a scripted transport, under virtual time.
func sendScripted(t *testing.T, o *semelhttp.TransportOptions, lines ...any) (s *scriptedServer, status int, err error) {
	s = &scriptedServer{lines: lines}
	synctest.Test(t, func(t *testing.T) {
		s.start = time.Now()
		var resp *http.Response
		resp, err = newClient(t, s, o).Post("http://example.com/pay", "text/plain", strings.NewReader("hello"))
		if err == nil {
			status = resp.StatusCode
			_ = resp.Body.Close()
		}
	})
	return s, status, err
}

var uuid = regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`)

func TestTransport_Attempts_SameKeyAndBytes(t *testing.T) {
	s, status, err := sendScripted(t, nil, errors.New("connection reset"), "503", "429 Retry-After: 1", "201")
	if err != nil || status != 201 || len(s.attempts) != 4 {
		t.Fatalf("got %d, %v after %d attempts", status, err, len(s.attempts))
	}
	for i, a := range s.attempts {
		if len(a.key) != 1 || !uuid.MatchString(a.key[0]) || a.key[0] != s.attempts[0].key[0] {
			t.Errorf("attempt %d has the key %q", i, a.key)
		}
		if a.body != "hello" || a.err != nil {
			t.Errorf("attempt %d has the body %q, %v", i, a.body, a.err)
		}
	}
	if s.closed != 3 {
		t.Errorf("%d of 3 answers were closed", s.closed)
	}
}

func TestTransport_Answers_RetriedOrFinal(t *testing.T) {
	problem := func(code string) string {
		return "409 Content-Type: application/problem+json\n{\"code\":\"" + code + "\"}"
	}
	for line, again := range map[any]bool{
		"200": false, "302": false, "400": false, "404": false, "422": false, "500": false, "501": false,
		"408": true, "425": true, "429": true, "499": false, "403 Retry-After: 1": true, "404 Retry-After: 1": true, "307": false, "502": true, "503": true, "504": true,
		"409":                                                         false,
		"409 Retry-After: 1":                                          true,
		problem("in_progress"):                                        true,
		problem("outcome_unknown"):                                    false,
		"409 Content-Type: text/html":                                 false,
		"503 Idempotent-Replayed: true":                               false,
		"409 Retry-After: 1; Idempotency-Replayed: ?1":                false,
		"502 Semel-Outcome: unknown":                                  false,
		"503 Retry-After: 3600":                                       false,
		"503 Retry-After: Sat, 01 Jan 2000 00:00:05 GMT":              true, // synctest begins at midnight
		"503 Retry-After: Sat, 01 Jan 2000 00:02:00 GMT":              false,
		"503 Retry-After: 3000000000":                                 false, // more than 31 bits
		"503 Retry-After: 99999999999999999999":                       false,
		"409 Retry-After: 3000000000":                                 false,
		"503 Retry-After: nonsense":                                   true,
		errors.New("no route"):                                        true,
		&tls.CertificateVerificationError{Err: errors.New("expired")}: false,
	} {
		s, _, _ := sendScripted(t, nil, line)
		if got := len(s.attempts) > 1; got != again {
			t.Errorf("%v: tried again is %v", line, got)
		}
		if len(s.attempts) > 4 {
			t.Errorf("%v: tried %d times", line, len(s.attempts))
		}
	}
}

func TestTransport_LastAnswer_ReturnedWhole(t *testing.T) {
	body := `{"code":"outcome_unknown","title":"x"}`
	s := &scriptedServer{lines: []any{"409 Content-Type: application/problem+json\n" + body}}
	resp, err := newClient(t, s, nil).Post("http://example.com/", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := readAnswer(resp); a.body != body || s.closed != 1 {
		t.Errorf("got %q, closed %d times", a.body, s.closed)
	}
}

func TestTransport_Pauses_FollowRetryAfterAndBackoff(t *testing.T) {
	gaps := func(s *scriptedServer) (g []time.Duration) {
		for i := 1; i < len(s.attempts); i++ {
			g = append(g, s.attempts[i].at-s.attempts[i-1].at)
		}
		return g
	}
	check := func(name string, got []time.Duration, want ...time.Duration) {
		t.Helper()
		if len(got) != len(want) {
			t.Errorf("%s: %d pauses, want %d", name, len(got), len(want))
			return
		}
		for i, d := range want {
			if got[i] < d/2 || got[i] > d+d/2 {
				t.Errorf("%s: pause %d is %v, want about %v", name, i, got[i], d)
			}
		}
	}
	const ms = time.Millisecond
	s, _, _ := sendScripted(t, nil, "503")
	check("default", gaps(s), 100*ms, 200*ms, 400*ms)
	s, _, _ = sendScripted(t, &semelhttp.TransportOptions{MaxAttempts: 6, Backoff: time.Second, MaxBackoff: 3 * time.Second}, "503")
	check("bounded", gaps(s), time.Second, 2*time.Second, 3*time.Second, 3*time.Second, 3*time.Second)
	s, _, _ = sendScripted(t, &semelhttp.TransportOptions{MaxAttempts: 70, MaxBackoff: time.Second}, "503")
	if g := gaps(s); len(g) != 69 || g[68] > 1500*ms {
		t.Errorf("the last of many pauses is %v", g[len(g)-1])
	}
	s, _, _ = sendScripted(t, &semelhttp.TransportOptions{MaxAttempts: 2}, "409 Retry-After: 30")
	if g := gaps(s); len(g) != 1 || g[0] < 30*time.Second || g[0] > 31*time.Second {
		t.Errorf("after Retry-After 30 the pauses are %v", g)
	}
	s, _, _ = sendScripted(t, &semelhttp.TransportOptions{MaxAttempts: 1}, "503")
	check("one attempt", gaps(s))
}

func TestTransport_ContextEnds_StopsRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedServer{lines: []any{"503 Retry-After: 10"}, start: time.Now()}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://example.com/", nil)
		resp, err := newClient(t, s, nil).Do(r)
		if err != nil || resp.StatusCode != 503 || len(s.attempts) != 2 || time.Since(s.start) > 12*time.Second {
			t.Errorf("got %v, %v after %d attempts in %v; want the last answer, at once", resp, err, len(s.attempts), time.Since(s.start))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := &scriptedServer{lines: []any{"503 Retry-After: 10"}, start: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://example.com/", nil)
		_, err := newClient(t, s, nil).Do(r)
		if !errors.Is(err, context.Canceled) || len(s.attempts) != 1 || time.Since(s.start) != 5*time.Second || s.closed != 1 {
			t.Errorf("got %v after %d attempts in %v", err, len(s.attempts), time.Since(s.start))
		}
	})
}

func TestTransport_NoKey_IsNotRepeated(t *testing.T) {
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		s := &scriptedServer{lines: []any{"503"}}
		r, _ := http.NewRequest(method, "http://example.com/", nil)
		resp, err := newClient(t, s, nil).Do(r)
		if err != nil || resp.StatusCode != 503 || len(s.attempts) != 1 {
			t.Errorf("%s: %v after %d attempts", method, err, len(s.attempts))
		}
	}
}

func TestTransport_ConnectionBreaks_OneSendPerAttempt(t *testing.T) {
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			s := newDroppingServer(t)
			c := newClient(t, &http.Transport{}, &semelhttp.TransportOptions{MaxAttempts: 1})
			warm(t, c, s.url)
			r := keyed(t, s.url, body())
			if resp, err := c.Do(r); err == nil {
				t.Errorf("got %d, but the connection died", resp.StatusCode)
				_ = resp.Body.Close()
			}
			if n := s.effects.Load(); n != 1 {
				t.Errorf("the server saw %d requests", n)
			}
			// With more attempts, this Transport repeats the request.
			s.effects.Store(0)
			c = newClient(t, &http.Transport{}, &semelhttp.TransportOptions{Backoff: time.Millisecond})
			warm(t, c, s.url)
			resp, err := c.Do(keyed(t, s.url, body()))
			if err != nil {
				t.Fatal(err)
			}
			if a := readAnswer(resp); a.StatusCode != 200 || s.effects.Load() != 2 {
				t.Errorf("got %d after %d requests", a.StatusCode, s.effects.Load())
			}
		})
	}
}

func TestTransport_WithMiddleware_OneEffect(t *testing.T) {
	bothProtocols(t, func(t *testing.T, http2 bool) {
		var fail sync.Map
		outer := func(h http.Handler) http.Handler { // drops the first answer to each key
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, again := fail.LoadOrStore(r.Header.Get("Idempotency-Key"), true)
				if again {
					h.ServeHTTP(w, r)
					return
				}
				h.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			})
		}
		site := newSite(t, setup{http2: http2, outer: outer}, echo)
		c := newClient(t, site.client.Transport, &semelhttp.TransportOptions{Backoff: time.Millisecond})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				body := fmt.Sprint("hello ", i)
				resp, err := c.Post(site.url, "text/plain", bytes.NewBufferString(body))
				if err != nil {
					t.Error(err)
					return
				}
				a := readAnswer(resp)
				site.want(a, 201, "you said "+body)
				if !semelhttp.Replayed(resp) {
					t.Error("the second answer is no replay")
				}
			})
		}
		wg.Wait()
		site.wantRuns(20)
	})
}

// The caller sets a trailer's value when the body has been read to its end.
func TestTransport_Trailers_SentWithEachAttempt(t *testing.T) {
	for name, again := range map[string]bool{"copied": false, "had again": true} {
		t.Run(name, func(t *testing.T) {
			var sums []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if sums = append(sums, r.Trailer.Get("X-Sum")); len(sums) == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			defer srv.Close()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Trailer = http.Header{"X-Sum": nil}
			body := func() (io.ReadCloser, error) {
				end := readerFunc(func([]byte) (int, error) { r.Trailer.Set("X-Sum", "42"); return 0, io.EOF })
				return io.NopCloser(io.MultiReader(strings.NewReader("hello"), end)), nil
			}
			r.Body, _ = body()
			r.ContentLength = -1
			if again {
				r.GetBody = body
			}
			resp, err := newClient(t, nil, &semelhttp.TransportOptions{Backoff: time.Nanosecond}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if len(sums) != 2 || sums[0] != "42" || sums[1] != "42" {
				t.Errorf("the attempts had the trailers %q", sums)
			}
		})
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestTransport_CloseIdleConnections_ReachesBase(t *testing.T) {
	closed := false
	newClient(t, idleCloser{&scriptedServer{}, &closed}, nil).CloseIdleConnections()
	if !closed {
		t.Error("not passed on")
	}
	newClient(t, &scriptedServer{}, nil).CloseIdleConnections() // its base has no such method
}

type idleCloser struct {
	http.RoundTripper
	closed *bool
}

func (c idleCloser) CloseIdleConnections() { *c.closed = true }

func TestReplayed_Markers_AreRecognized(t *testing.T) {
	if semelhttp.Replayed(nil) || semelhttp.Replayed(&http.Response{}) {
		t.Error("nothing is a replay")
	}
	for name, want := range map[string]bool{"Idempotent-Replayed": true, "Idempotency-Replayed": true, "X-Idempotent-Replayed": true, "Replayed": false} {
		r := &http.Response{Header: http.Header{}}
		r.Header.Set(name, "true")
		if semelhttp.Replayed(r) != want {
			t.Errorf("%s: %v", name, !want)
		}
		r.Header.Set(name, "false")
		if semelhttp.Replayed(r) {
			t.Errorf("%s: false counts", name)
		}
	}
}

func TestTransport_FirstRequestRuns_AsksUntilItEnds(t *testing.T) {
	busy := "409 Retry-After: 2; Content-Type: application/problem+json\n{\"code\":\"in_progress\"}"
	lines := []any{errors.New("connection reset"), "503"}
	for range 12 {
		lines = append(lines, busy)
	}
	s, status, err := sendScripted(t, nil, append(lines, "503", "201")...) // the fourth of four attempts succeeds
	if err != nil || status != 201 || len(s.attempts) != 16 {
		t.Errorf("got %d, %v after %d attempts", status, err, len(s.attempts))
	}
	s, status, err = sendScripted(t, nil, busy)
	if last := s.attempts[len(s.attempts)-1].at; err != nil || status != 409 || last < time.Minute || last > 2*time.Minute {
		t.Errorf("got %d, %v; the last attempt was after %v", status, err, last)
	}
	if s, status, _ = sendScripted(t, &semelhttp.TransportOptions{MaxAttempts: 1}, busy); status != 409 || len(s.attempts) != 1 {
		t.Errorf("with one attempt: got %d after %d attempts", status, len(s.attempts))
	}
}
