// Package deliver sends each message as a POST to a service, and says by the answer
// what happens to the message.
package deliver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/cmd/semel/semel-deliver/internal/event"
	"github.com/semel-go/semel/consume"
	"github.com/semel-go/semel/semelhttp"
)

// Sending says how a message is sent.
type Sending struct {
	URL       *url.URL
	Transport http.RoundTripper // of upstream.NewTransport
	Mode      event.Mode
	Defaults  event.Defaults
	// Header is added to each request.
	Header http.Header
	// Forward are the names of headers of messages that the request gets, too.
	Forward  []string
	Timeout  time.Duration
	MaxBody  int64
	Statuses Statuses
	// MaxRefusals is how often a message may be refused before it goes to the dead
	// letters. Zero: no limit.
	MaxRefusals int
	Log         *slog.Logger
}

// sender is the handler of the consumer.
type sender struct {
	Sending
	gate     *gate
	backoff  func(n int) time.Duration
	refusals streaks
	laters   streaks // without those that stop all messages: their pauses are the gate's
}

func newSender(s Sending, g *gate, backoff func(n int) time.Duration) *sender {
	return &sender{Sending: s, gate: g, backoff: backoff}
}

// The codes of failures that are found before a message is sent.
const (
	codeTooLarge = "body_too_large"
	codeInvalid  = "event_invalid"
)

// handle sends a message. It is a consume.Handler.
func (s *sender) handle(ctx context.Context, x *semel.Execution, m *consume.Message) error {
	limited, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	r, err := s.request(limited, x, m)
	if err != nil {
		return err
	}
	answer, text, err := s.send(r)
	if upstream.Refused(err) { // it says nothing about the service, and comes again with each try
		return invalid(err)
	}
	err = input.WithoutQuotes(err) // it goes to the log, the record and the dead letter
	v := s.Statuses.judge(answer)
	switch {
	case ctx.Err() != nil: // this program gave up, which says nothing about the service
	case v.pause:
		sendingOf(ctx).pause(v, s.gate, reasonText(answer.Status, v.reason, err))
	case answer.Status != 0:
		sendingOf(ctx).answered(s.gate)
	}
	return s.settle(ctx, x, m, answer, v, text, err)
}

// request makes the request of a message. Its error ends the message.
func (s *sender) request(ctx context.Context, x *semel.Execution, m *consume.Message) (*http.Request, error) {
	if n := int64(len(m.Body)); n > s.MaxBody {
		return nil, &semel.Failure{Code: codeTooLarge, Message: fmt.Sprintf("the body has %d bytes, more than --max-body, which is %d; nothing was sent", n, s.MaxBody)}
	}
	defaults := s.Defaults
	if !event.IsAttribute(m.Key) {
		defaults.ID = derivedKey(x)
	}
	e, err := event.Read(m, defaults)
	if err != nil {
		return nil, invalid(err)
	}
	h := make(http.Header, len(s.Header)+requestHeaders)
	maps.Copy(h, s.Header)
	for _, name := range s.Forward {
		if v, ok := m.Header(name); ok && event.IsHeaderValue(v) {
			h.Set(name, v)
		}
	}
	body, err := e.Write(h, s.Mode)
	if err != nil {
		return nil, invalid(err)
	}
	h.Set("Idempotency-Key", headerKey(x))
	h.Set(upstream.FenceHeader, strconv.FormatUint(x.Fence(), 10))
	h.Set(upstream.AttemptHeader, strconv.Itoa(x.Attempt()))
	h.Set(upstream.DigestHeader, x.Fingerprint())
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", "semel-deliver")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL.String(), bytes.NewReader(body))
	if err != nil {
		return nil, invalid(err)
	}
	r.Header = h
	semelhttp.NoResend(r)
	return r, nil
}

func invalid(err error) error {
	return &semel.Failure{Code: codeInvalid, Message: "nothing was sent: " + strings.ReplaceAll(err.Error(), "\n", "; ")}
}

// headerKey is the key as a quoted string, which the draft of Idempotency-Key asks for.
// A key that such a string cannot hold is replaced by one that is derived from it.
func headerKey(x *semel.Execution) string {
	key := x.Key()
	if strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		key = derivedKey(x)
	}
	return `"` + escaper.Replace(key) + `"`
}

// derivedKey takes the place of a key that a header or an attribute cannot hold.
func derivedKey(x *semel.Execution) string { return x.DownstreamKey("deliver") }

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// requestHeaders is how many headers a request usually has besides the user's.
const requestHeaders = 12

const (
	maxAnswer = 1 << 20 // bytes of an answer that are read, so that its connection can be used again
	maxText   = 512     // bytes of an answer that a dead letter quotes
)

// send sends a request. It uses no http.Client, which would follow redirects, although
// the user named one service. The text is the beginning of the answer, if that is text.
func (s *sender) send(r *http.Request) (a semelhttp.Answer, text string, err error) {
	res, err := s.Transport.RoundTrip(r)
	if err != nil {
		return semelhttp.Answer{NotBegun: upstream.NotSent(err), Ended: r.Context().Err() != nil}, "", err
	}
	defer func() { _ = res.Body.Close() }() // it was read as far as it counts
	a = semelhttp.Answer{Status: res.StatusCode, Header: res.Header, Path: r.URL.Path}
	head, err := io.ReadAll(io.LimitReader(res.Body, maxText))
	if err == nil {
		_, err = io.CopyN(io.Discard, res.Body, maxAnswer)
	}
	if a.Broken = err != nil && !errors.Is(err, io.EOF); !a.Broken {
		err = nil
	}
	return a, quotable(head), err
}

// quotable is the beginning of a body as one line of text; empty if it is no text.
func quotable(b []byte) string {
	s := strings.TrimSpace(strings.ToValidUTF8(string(b), ""))
	if strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == utf8.RuneError }) {
		return ""
	}
	return strings.Join(strings.Fields(s), " ")
}

// reasonText says why a request has no result.
func reasonText(status int, reason string, err error) string {
	switch {
	case status != 0 && err != nil:
		return fmt.Sprintf("the service answered %d, but %s: %v", status, reason, err)
	case status != 0:
		return fmt.Sprintf("the service answered %d %s: %s", status, http.StatusText(status), reason)
	case err != nil:
		return fmt.Sprintf("no answer: %v", err)
	}
	return reason
}

// settle is the result of the handler.
func (s *sender) settle(ctx context.Context, x *semel.Execution, m *consume.Message, a semelhttp.Answer, v verdict, text string, err error) error {
	if v.effect != refused {
		s.refusals.forget(x)
	}
	if v.effect != later {
		s.laters.forget(x)
	}
	var why string
	if v.effect != done {
		if why = reasonText(a.Status, v.reason, err); text != "" {
			why += ": " + text
		}
	}
	switch v.effect {
	case done:
		sent := sendingOf(ctx)
		if sent.status = a.Status; a.Status >= http.StatusBadRequest { // one of --done-statuses; the record says that it is done
			sent.status = http.StatusOK
		}
		return nil
	case failed:
		return &semel.Failure{Code: failureCode(a.Status), Message: why}
	case later:
		n := 1
		if !v.pause {
			n = s.laters.add(x)
		}
		return semel.NoEffect(again{why, s.pauseOf(v, n)})
	case refused:
		n := s.refusals.add(x)
		if s.MaxRefusals > 0 && n >= s.MaxRefusals {
			s.refusals.forget(x)
			return &semel.Failure{Code: failureCode(a.Status), Message: fmt.Sprintf("refused %d times; the last: %s", n, why)}
		}
		return semel.NoEffect(again{why, s.pauseOf(v, n)})
	case doubt:
	}
	s.Log.Warn("nobody knows whether a message took effect", "topic", m.Origin.Topic, "offset", m.Origin.Offset, "attempt", x.Attempt(), "reason", why)
	if v.after > 0 && x.Policy() != semel.Park { // a parked message is not sent again, so it need not wait
		return again{why, v.after}
	}
	return errors.New(why)
}

// pauseOf is the pause before the next try: the one that the service asks for, or one
// that grows with the number of tries.
func (s *sender) pauseOf(v verdict, n int) time.Duration {
	if v.after > 0 {
		return v.after
	}
	return s.backoff(n)
}

// again is an error that names the pause before the next try.
type again struct {
	reason string
	after  time.Duration
}

// Error implements error.
func (a again) Error() string { return a.reason }

// RetryAfter is for package consume.
func (a again) RetryAfter() time.Duration { return a.after }
