package webhook_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel/outbox"
	"github.com/semel-go/semel/outbox/outboxtest"
	"github.com/semel-go/semel/outbox/webhook"
)

// roundTripper is a client's transport without a network.
type roundTripper func(r *http.Request) *http.Response

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// A receiver answers 429 or 503 with Retry-After. The message comes no earlier than that, and
// after other answers by the publisher's backoff.
func TestPublish_RetryAfter_IsKept(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		after  func(now time.Time) string
		want   time.Duration
	}{
		"429, seconds":       {429, func(time.Time) string { return "120" }, 2 * time.Minute},
		"503, date":          {503, func(now time.Time) string { return now.Add(10 * time.Minute).UTC().Format(http.TimeFormat) }, 10 * time.Minute},
		"503, a week":        {503, func(time.Time) string { return "604800" }, outbox.LongestDelay},
		"429, no number":     {429, func(time.Time) string { return "soon" }, time.Second},
		"429, without it":    {429, func(time.Time) string { return "" }, time.Second},
		"429, zero":          {429, func(time.Time) string { return "0" }, time.Second},
		"500, not specified": {500, func(time.Time) string { return "120" }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var times []time.Time
				client := &http.Client{Transport: roundTripper(func(r *http.Request) *http.Response {
					mu.Lock()
					defer mu.Unlock()
					times = append(times, time.Now())
					res := &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}
					if len(times) == 1 {
						res.StatusCode = c.status
						res.Header.Set("Retry-After", c.after(time.Now()))
					}
					return res
				})}
				sink, err := webhook.New(func(context.Context, *outbox.Message) (webhook.Endpoint, error) {
					return webhook.Endpoint{URL: "http://receiver.example/hook"}, nil
				}, &webhook.Options{Client: client})
				if err != nil {
					t.Fatal(err)
				}
				m := outboxtest.NewMemory()
				if err := m.Put(t.Context(), outbox.Message{Topic: "t", OrderKey: "ann", ID: "1"}); err != nil {
					t.Fatal(err)
				}
				var failed atomic.Int64
				p, err := outbox.New(m, sink, &outbox.Options{
					Backoff: func(int) time.Duration { return time.Second },
					Observe: func(_ context.Context, e outbox.Event) {
						if e.Kind == outbox.EventFailed {
							failed.Store(int64(e.Delay))
						}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- p.Run(ctx) }()
				time.Sleep(outbox.LongestDelay + time.Minute)
				stop()
				<-done
				if len(times) != 2 || time.Duration(failed.Load()) != c.want {
					t.Fatalf("%d requests, a delay of %v; want 2 and %v", len(times), time.Duration(failed.Load()), c.want)
				}
				if pause := times[1].Sub(times[0]); pause < c.want || pause > c.want+10*time.Second {
					t.Errorf("sent again after %v, want %v", pause, c.want)
				}
			})
		})
	}
}
