package semelhttp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/semelhttp"
)

// stormAnswer is an answer that a client got.
type stormAnswer struct {
	answer
	key, payload, method string
	policy               semel.Policy
	run                  int // the run that made the answer; 0: none
}

// stormRequest is what a client asked for: its header and its payload.
type stormRequest struct{ key, payload string }

// bodyFor makes a body with a payload. It ends with its hash, so that a handler can
// check that it is complete.
func bodyFor(payload string, large bool) []byte {
	b := []byte(payload + " ")
	if large {
		b = append(b, bytes.Repeat([]byte("0123456789abcdef"), 6<<10)...)
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// payloadOf is the inverse of bodyFor.
func payloadOf(r *http.Request) (string, error) {
	if r.Method == http.MethodHead {
		return r.URL.Query().Get("payload"), nil
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	payload, _, ok := strings.Cut(string(b), " ")
	if want := bodyFor(payload, len(b) > 1000); !ok || !bytes.Equal(b, want) || int64(len(b)) != r.ContentLength {
		return "", fmt.Errorf("%d bytes of another body", len(b))
	}
	return payload, nil
}

var errCutOff = errors.New("the client broke off")

// cutBody is a body that ends with an error.
type cutBody struct{ io.Reader }

func (b cutBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = errCutOff
	}
	return n, err
}

// request makes a request for a key, in one of several ways.
func (s *storm) request(ctx context.Context, r *rand.Rand, n *stormNode, key int, payload string) (*http.Request, *http.Client) {
	f, client := formOf(key), n.plain
	req, err := http.NewRequestWithContext(ctx, f.method, n.srv.URL+f.path, nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Idempotency-Key", fmt.Sprintf(`"key-%d"`, key))
	b := bodyFor(payload, f.large && key%2 == 0)
	if f.method == http.MethodHead {
		req.URL.RawQuery = "payload=" + payload
		return req, client
	}
	setBody(req, b)
	switch way := r.IntN(12); {
	case s.faultsOff.Load():
	case way < 3:
		client = n.resend
	case way == 3: // chunked, with an unexpected trailer
		req.Body, req.GetBody, req.ContentLength = io.NopCloser(bytes.NewReader(b)), nil, -1
		req.Trailer = http.Header{"X-Late": {"late"}}
	case way == 4: // it must leave no record
		req.Header.Set("Idempotency-Key", fmt.Sprint("torn-", key))
		req.Body, req.GetBody = io.NopCloser(cutBody{bytes.NewReader(b[:r.IntN(len(b))])}), nil
	case way == 5:
		req.Header.Set("Expect", "100-continue")
	case way == 6:
		req.Header.Set("Prefer", "respond-async, wait=0")
	case way == 7:
		req.Body, req.GetBody = io.NopCloser(bytes.NewReader(b)), nil
		client = n.resend
	}
	return req, client
}

func setBody(req *http.Request, b []byte) {
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	req.Body, _ = req.GetBody()
	req.ContentLength = int64(len(b))
}

// send sends one request. The client may time out early, or disconnect in the middle
// of the answer.
func (s *storm) send(r *rand.Rand, key int) {
	patience, payload := time.Second, "this"
	if r.IntN(4) == 0 {
		patience = time.Duration(r.IntN(60)) * time.Millisecond
	}
	if r.IntN(8) == 0 {
		payload = "that"
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, client := s.request(ctx, r, s.node(), key, payload)
	resp, err := client.Do(req)
	if err != nil {
		s.recordUnanswered(req, payload)
		return
	}
	if r.IntN(10) == 0 {
		s.recordUnanswered(req, payload)
		_, _ = io.CopyN(io.Discard, resp.Body, r.Int64N(500))
		_ = resp.Body.Close()
		return
	}
	s.recordAnswer(resp, key, payload)
}

func (s *storm) recordUnanswered(req *http.Request, payload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unanswered[stormRequest{req.Header.Get("Idempotency-Key"), payload}] = true
}

// recordAnswer reads an answer and records it.
func (s *storm) recordAnswer(resp *http.Response, key int, payload string) *stormAnswer {
	f := formOf(key)
	a := &stormAnswer{answer: readAnswer(resp), key: fmt.Sprint("key-", key), payload: payload, method: f.method, policy: f.policy}
	_, _ = fmt.Sscanf(a.Header.Get("Location"), "/runs/%d", &a.run)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, a)
	return a
}

// askUntilFinal repeats a key's request, without faults, until it gets a final answer.
func (s *storm) askUntilFinal(r *rand.Rand, key int, end time.Time) {
	why := "there was no time left"
	for ; time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		for _, payload := range []string{"this", "that"} {
			req, client := s.request(s.t.Context(), r, s.node(), key, payload)
			resp, err := client.Do(req)
			if err != nil {
				why = err.Error()
				continue
			}
			a := s.recordAnswer(resp, key, payload)
			code := a.code()
			if f := formOf(key); a.run > 0 || f.policy == semel.Park && (code == semelhttp.CodeOutcomeUnknown || f.method == http.MethodHead && a.StatusCode == 409) {
				return
			}
			why = fmt.Sprint(a.StatusCode, " ", code)
		}
	}
	s.fail("key-%d has no end: %s", key, why)
}
