package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/observe"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/store"
)

// observer serves the requests of an observing proxy. It forwards each request as if it
// had no key, and plays a copy of it, its twin, through the router of the proxy, with a
// store in memory. The routes of the twins end with the answer of the service instead of
// a request to it, so that the code of the proxy itself says what it would have done.
type observer struct {
	router   *router
	counts   *observe.Counts
	registry metrics.Registry // of the process; the proxy's own counts are of twins
	log      *slog.Logger

	twins   sync.WaitGroup
	running context.Context //nolint:containedctx // of all twins: see close
	stop    context.CancelFunc
}

// LogEvery is the pause between two log lines of an observing proxy.
const LogEvery = 5 * time.Minute

// twinPatience is how long the end of an answer may wait for its twin, so that the next
// request of the client finds it ended. Tests change it.
var twinPatience = 50 * time.Millisecond

// observing returns a configuration for twins: they ask no hooks, and nothing is swept.
func observing(c *config.Config) *config.Config {
	own := *c
	own.ReconcileURL, own.AuthorizeURL, own.ReconcileEvery, own.SweepEvery = nil, nil, 0, 0
	return &own
}

func newObserver(m *observe.Memory, log *slog.Logger) *observer {
	o := &observer{counts: observe.NewCounts(m), log: log}
	o.running, o.stop = context.WithCancel(context.Background())
	o.counts.Register(&o.registry)
	return o
}

// close ends the twins that still wait for another request, and waits for all.
func (o *observer) close() {
	o.stop()
	o.twins.Wait()
}

// logCounts logs the counts now and then, until ctx ends.
func (o *observer) logCounts(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for last := uint64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if r := o.counts.Report(); r.Requests != last {
			last = r.Requests
			o.log.Info("observed", append([]any{"requests", r.Requests}, r.Totals()...)...)
		}
	}
}

// ServeHTTP implements http.Handler. It refuses only what no reverse proxy can forward,
// and peers that may not connect.
func (o *observer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := o.router
	w, end := limitWrites(w, r, d.writeTimeout)
	defer end()
	d.ignoreUpgrade(r.Header)
	if p := d.unforwardable(r); p != nil {
		o.counts.Add(observe.Rule{}, observe.Refused(p.Code), observe.None, observe.CallerOf(r))
		d.refuse(w, r, *p)
		return
	}
	to := d.strictest(d.find(r), r)
	rule := observe.Rule{Operation: to.rule.Operation, Match: to.rule.Match}
	switch p := d.problemOf(r); {
	case p != nil:
		o.counts.Add(observe.Rule{}, observe.Refused(p.Code), observe.None, observe.CallerOf(r))
	case to.passThrough || !to.protects(r):
		o.counts.Add(rule, observe.Passed, observe.None, observe.Caller{})
	default:
		o.forward(w, r, to, rule)
		return
	}
	to.upstream.ServeHTTP(w, r)
}

// forward forwards a request that the proxy would protect, beside its twin.
func (o *observer) forward(w http.ResponseWriter, r *http.Request, to *route, rule observe.Rule) {
	upstream.ShareTrailers(r)
	s := newObservation()
	ctx, seen := upstream.Observe(r.Context())
	forwarded := r.WithContext(ctx)
	twinCtx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	stop := context.AfterFunc(o.running, func() {
		if <-s.looked; s.found == store.Processing {
			cancel()
		}
	})
	twin := r.Clone(context.WithValue(twinCtx, observationKey{}, s))
	if r.Body != nil && r.Body != http.NoBody {
		s.feed = newFeed(r.Body, r.ContentLength)
		forwarded.Body, twin.Body = s.feed, twinBody{s.feed}
	}
	o.twins.Go(func() {
		defer cancel()
		defer stop()
		o.play(s, twin, rule)
	})
	defer func() {
		p := recover()
		s.finish(r, seen, p != nil)
		if p != nil {
			panic(p) // the service or the client broke off in the middle of the answer
		}
	}()
	to.upstream.ServeHTTP(&observedWriter{w, s}, forwarded)
}

// play sends the twin through the router, and counts the result.
func (o *observer) play(s *observation, twin *http.Request, rule observe.Rule) {
	defer close(s.ended)
	from := observe.CallerOf(twin)
	defer func() {
		if p := recover(); p != nil {
			o.log.Error("a request could not be observed", "panic", p)
			s.code = string(observe.Unobserved)
		}
		s.look(0)
		if s.feed != nil {
			_ = twinBody{s.feed}.Close() // it only ends the copying
		}
		o.counts.Add(rule, s.result(), s.doubt, from)
	}()
	o.router.ServeHTTP(&blankWriter{header: http.Header{}}, twin)
}

// observedStore tells an observation which record its claim has found.
type observedStore struct{ store.Store }

// Unwrap lets store.As find the optional interfaces.
func (s observedStore) Unwrap() store.Store { return s.Store }

// Claim implements store.Store.
func (s observedStore) Claim(ctx context.Context, p store.Proposal) (store.Found, error) {
	f, err := s.Store.Claim(ctx, p)
	if seen := observationFrom(ctx); seen != nil && err == nil {
		if f.Won || f.Record.Expired(f.Now) {
			seen.look(0)
		} else {
			seen.look(f.Record.State)
		}
	}
	return f, err
}
