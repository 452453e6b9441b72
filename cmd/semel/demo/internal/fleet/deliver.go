package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/semel-go/semel/cmd/semel/demo/internal/ledger"
)

// Answer is what a client can tell two answers apart by.
type Answer struct {
	Status      int
	ContentType string
	Body        string
}

func (a *Answer) ok() bool { return a.Status >= 200 && a.Status < 300 }

// delivery is a request and all its repetitions.
type delivery struct {
	Answer
	final bool
	took  time.Duration // of the request that was answered
	calm  bool          // it was the first, and nothing disturbed it
}

const (
	patience = 10 * time.Second // of a client that does not hang up
	// A client waits a while before it repeats, and longer each time, but
	// never longer than a person wants to watch.
	leastPause = 10 * time.Millisecond
	mostPause  = 250 * time.Millisecond
)

// deliver sends a step's request until there is a final answer.
func (f *Fleet) deliver(ctx context.Context, s *Step) delivery {
	o := &f.plan.Orders[s.Order]
	p := ledger.Payment{Order: o.Name, Amount: o.Amount}
	if s.Kind == Changed {
		p.Amount++
	}
	body, err := json.Marshal(p)
	if err != nil {
		return delivery{Answer: Answer{Body: err.Error()}, final: true}
	}
	pause, warm := leastPause, f.Steps.Load() >= f.warm
	for n := 0; ctx.Err() == nil; n++ {
		limit := patience
		if n == 0 && s.HangUp > 0 {
			limit = s.HangUp
		}
		begun := time.Now()
		a, after, err := f.send(ctx, o, body, limit)
		if err == nil && final(a.Status) {
			return delivery{Answer: a, final: true, took: time.Since(begun), calm: warm && n == 0 && o.Work == 0 && !f.Disturbed.Load()}
		}
		if err == nil && after > pause {
			pause = min(after, mostPause)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, mostPause)
	}
	return delivery{}
}

// final reports whether a client knows its fate by this answer: all others are
// worth a repetition with the same key.
func final(status int) bool {
	switch status {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusTooEarly:
		return false
	}
	return status >= 200 && status < 500
}

// send is one request.
func (f *Fleet) send(ctx context.Context, o *Order, body []byte, limit time.Duration) (a Answer, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// A body that cannot be rewound keeps http.Transport from sending the
	// request again by itself: here every repetition counts.
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, struct{ io.Reader }{bytes.NewReader(body)})
	if err != nil {
		return a, 0, err
	}
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(ledger.TenantHeader, o.Tenant)
	r.Header.Set(ledger.KeyHeader, o.Key)
	if o.Work > 0 {
		r.Header.Set(ledger.WorkHeader, o.Work.String())
	}
	f.Sent.Add(1)
	f.InFlight.Add(1)
	defer f.InFlight.Add(-1)
	defer func() { f.count(&a, err) }()
	res, err := f.client.Do(r)
	if err != nil {
		return a, 0, err
	}
	defer func() { _ = res.Body.Close() }() // it is read to its end
	got, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return a, 0, err // cut off: the client cannot use it
	}
	if res.Header.Get("Idempotent-Replayed") == "true" {
		f.Replays.Add(1)
	}
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After")) // absent, or a date: none
	return Answer{res.StatusCode, res.Header.Get("Content-Type"), string(got)}, time.Duration(seconds) * time.Second, nil
}

func (f *Fleet) count(a *Answer, err error) {
	switch {
	case err != nil || a.Status >= 500:
		f.Failed.Add(1)
	case a.Status == http.StatusConflict:
		f.Conflicts.Add(1)
		var problem struct{ Code string }
		if json.Unmarshal([]byte(a.Body), &problem) == nil && problem.Code == "outcome_unknown" {
			f.Unknown.Add(1)
		}
	}
}
