// Package rates reads the /metrics of processes, and keeps how many calls a minute they
// ran, replayed and refused in the last hour. A store does not count these.
package rates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// kept is how many readings a Recorder keeps.
	kept = 360
	// mostBytes is the most that is read of one answer.
	mostBytes = 8 << 20
)

// Options are the settings of a [Recorder].
type Options struct {
	// URLs are the addresses of metrics, such as http://10.0.0.7:9090/metrics. At least
	// one. A user, a password and a query are sent, but not shown.
	URLs []string
	// Every is the time from one reading to the next: 10 s by default, at least 1 s.
	Every time.Duration
	// Client makes the requests. Nil: a client with a limit of 5 s for each.
	Client *http.Client
}

// Recorder reads counters and keeps their rates. Safe for concurrent use. Make it with
// [New].
type Recorder struct {
	options Options

	mu   sync.Mutex
	last map[string]counts // by URL
	errs map[string]error  // by URL; nil: it has answered
	read time.Time         // the last reading; zero: none
	ring []counts          // calls a minute, the oldest first
}

// New makes a recorder. It does no I/O.
func New(o Options) (*Recorder, error) {
	if len(o.URLs) == 0 {
		return nil, errors.New("rates: URLs is empty; name the metrics of at least one process, such as http://127.0.0.1:9090/metrics")
	}
	for i, text := range o.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			shown := strconv.Quote(text)
			if strings.ContainsAny(text, "@?#") { // it may contain a secret
				shown = fmt.Sprintf("URLs[%d]", i)
			}
			return nil, fmt.Errorf("rates: %s is no address of metrics, such as http://127.0.0.1:9090/metrics", shown)
		}
	}
	if o.Every == 0 {
		o.Every = 10 * time.Second
	}
	if o.Every < time.Second {
		return nil, fmt.Errorf("rates: Every is %v; it must be at least 1s", o.Every)
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: 5 * time.Second}
	}
	return &Recorder{options: o, last: map[string]counts{}, errs: map[string]error{}}, nil
}

// Run reads the metrics until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	tick := time.NewTicker(r.options.Every)
	defer tick.Stop()
	for {
		r.Read(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Read reads the metrics of all processes once. [Recorder.Run] calls it.
func (r *Recorder) Read(ctx context.Context) {
	type answer struct {
		counts counts
		err    error
	}
	answers := make([]answer, len(r.options.URLs))
	var all sync.WaitGroup
	for i, address := range r.options.URLs {
		all.Go(func() { answers[i].counts, answers[i].err = r.fetch(ctx, address) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	var sum counts
	for i, address := range r.options.URLs {
		a := answers[i]
		if r.errs[address] = a.err; a.err != nil {
			continue
		}
		if before, known := r.last[address]; known {
			sum.add(a.counts.since(before))
		}
		r.last[address] = a.counts
	}
	if !r.read.IsZero() {
		r.ring = append(r.ring, sum.times(time.Minute.Seconds()/now.Sub(r.read).Seconds()))
		r.ring = r.ring[max(0, len(r.ring)-kept):]
	}
	r.read = now
}

// masked is an address for people: without its user and its query, which can be secrets.
func masked(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "a process" // New has parsed the address
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

func (r *Recorder) fetch(ctx context.Context, address string) (c counts, err error) {
	shown := masked(address)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return c, err
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	res, err := r.options.Client.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok { // its text has the whole address
		err = e.Err
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", shown, err)
	}
	defer func() { _ = res.Body.Close() }() // after a read there is nothing to lose
	if res.StatusCode != http.StatusOK {
		return c, fmt.Errorf("%s answers %s", shown, res.Status)
	}
	if c, err = parse(io.LimitReader(res.Body, mostBytes)); err != nil {
		return c, fmt.Errorf("%s: %w", shown, err)
	}
	return c, nil
}

// Series is one chart: calls a minute, the oldest first.
type Series struct {
	Name   string
	Points []float64
}

// Snapshot is what a recorder knows at one time.
type Snapshot struct {
	Series    []Series      // none before the second reading
	Every     time.Duration // from one point to the next
	Processes int
	Silent    []string // processes that did not answer the last time, and why
}

// Snapshot is what the recorder has read.
func (r *Recorder) Snapshot() Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Snapshot{Every: r.options.Every, Processes: len(r.options.URLs)}
	for _, address := range r.options.URLs {
		if err := r.errs[address]; err != nil {
			s.Silent = append(s.Silent, err.Error())
		}
	}
	slices.Sort(s.Silent)
	if len(r.ring) == 0 {
		return s
	}
	for g, name := range groups {
		points := make([]float64, len(r.ring))
		for i, c := range r.ring {
			points[i] = c[g]
		}
		s.Series = append(s.Series, Series{name, points})
	}
	return s
}
