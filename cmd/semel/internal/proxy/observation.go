package proxy

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/config"
	"github.com/semel-go/semel/cmd/semel/internal/observe"
	"github.com/semel-go/semel/cmd/semel/internal/problem"
	"github.com/semel-go/semel/cmd/semel/internal/upstream"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
)

// observation is one forwarded request and its twin.
type observation struct {
	feed     *feed         // nil: the request has no body
	looked   chan struct{} // is closed when the twin has looked for a record, or has ended
	lookOnce sync.Once
	found    store.State   // of the record that the twin found; 0: none. Read it after looked
	answered chan struct{} // is closed when the client has its answer, or will get none
	ended    chan struct{} // is closed when the twin has ended

	// The answer that the client got. Read it after answered.
	status     int // 0: none
	header     http.Header
	written    int64
	mark       string // see upstream.Observed
	silent     bool   // the service gave no answer, or broke it off
	broken     bool   // in the middle
	clientLeft bool

	// The way of the twin.
	handled bool // it reached the service
	keyed   bool
	code    string // of the refusal; empty: none
	doubt   observe.Doubt
}

type observationKey struct{}

func newObservation() *observation {
	return &observation{looked: make(chan struct{}), answered: make(chan struct{}), ended: make(chan struct{})}
}

func observationFrom(ctx context.Context) *observation {
	s, _ := ctx.Value(observationKey{}).(*observation)
	return s
}

// look keeps what the first claim of the twin has found.
func (s *observation) look(found store.State) {
	s.lookOnce.Do(func() {
		s.found = found
		close(s.looked)
	})
}

// finish ends a forwarded request. It waits a moment for a twin that does not wait for
// another request.
func (s *observation) finish(r *http.Request, seen *upstream.Observed, broken bool) {
	s.mark, s.broken = seen.Mark, broken
	s.silent = broken || seen.Err != nil
	s.clientLeft = s.silent && r.Context().Err() != nil
	if s.feed != nil {
		s.feed.cut()
	}
	close(s.answered)
	late := time.NewTimer(twinPatience)
	defer late.Stop()
	select {
	case <-s.looked:
	case <-late.C:
		return
	}
	if s.found == store.Processing {
		return
	}
	select {
	case <-s.ended:
	case <-late.C:
	}
}

// result is what the proxy would have done.
func (s *observation) result() observe.Result {
	switch {
	case s.code == string(observe.Unobserved):
		return observe.Unobserved
	case s.handled && !s.keyed:
		return observe.Unkeyed
	case s.handled && s.found == 0:
		return observe.First
	case s.handled:
		return observe.Again
	}
	if s.found == store.Processing && (s.code == "" || s.code == semelhttp.CodeStoreUnavailable) {
		return observe.DuringFirst // it waited, for the answer or until the proxy ended
	}
	switch s.code {
	case "":
		return observe.AfterFirst
	case semelhttp.CodeInProgress, semelhttp.CodeAttemptFailed:
		return observe.DuringFirst
	case semelhttp.CodeOutcomeUnknown:
		return observe.InDoubt
	case semelhttp.CodePayloadMismatch:
		return observe.Mismatch
	case semelhttp.CodeKeyMissing:
		return observe.KeyMissing
	case semelhttp.CodeKeyMalformed:
		return observe.KeyMalformed
	case semelhttp.CodeBodyUnreadable, semelhttp.CodeSpoolUnavailable:
		return observe.Unobserved
	}
	return observe.Refused(s.code)
}

// refused keeps the reason why the proxy would have refused a request. On the request of
// a proxy that does not observe it does nothing.
func refused(r *http.Request, p *semelhttp.Problem) {
	if s := observationFrom(r.Context()); s != nil && !s.handled {
		s.code = p.Code
	}
}

// service stands for the service on the routes of twins: it waits for the answer that
// the client got, and gives the same.
func service(rule *config.Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := observationFrom(r.Context())
		_, s.keyed = semel.FromContext(r.Context())
		if s.handled = true; !s.keyed {
			return
		}
		late := time.NewTimer(rule.UpstreamTimeout)
		defer late.Stop()
		select {
		case <-s.answered:
			s.answer(w, r)
		case <-late.C:
			s.doubt = observe.Silence
			problem.Write(w, problem.UpstreamTimeout)
		case <-r.Context().Done():
		}
	})
}

// answer writes an answer like the one that the client got, with another body of the same
// length, and says whether it leaves open what happened.
func (s *observation) answer(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.clientLeft: // the proxy would have waited for the answer, which nobody knows now
		s.doubt = observe.ClientLeft
		return
	case s.broken:
		s.doubt = observe.Silence
		semelhttp.Broken(r)
		problem.Write(w, problem.UpstreamLost)
		return
	}
	switch s.mark {
	case upstream.ResultFinal:
		semelhttp.Final(r)
	case upstream.ResultNoEffect:
		semelhttp.NoEffect(r)
	default:
		v := semelhttp.Judge(semelhttp.Answer{Status: s.status, Header: s.header, Path: r.URL.Path})
		switch {
		case v.Effect != semelhttp.Doubt:
		case s.silent:
			s.doubt = observe.Silence
		default:
			s.doubt = observe.ServerError
		}
	}
	if s.status == 0 {
		return
	}
	for name, values := range s.header {
		w.Header()[name] = values
	}
	w.WriteHeader(s.status)
	for left := s.written; left > 0; left -= int64(len(blank)) {
		if _, err := w.Write(blank[:min(left, int64(len(blank)))]); err != nil {
			return
		}
	}
}

// blank is a part of a body whose content does not matter.
var blank = make([]byte, 32<<10)

// observedWriter passes an answer on to the client, and keeps what the twin needs.
type observedWriter struct {
	http.ResponseWriter
	s *observation
}

// WriteHeader implements http.ResponseWriter.
func (w *observedWriter) WriteHeader(status int) {
	if status >= http.StatusOK && w.s.status == 0 {
		w.s.status, w.s.header = status, w.Header().Clone()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *observedWriter) Write(p []byte) (int, error) {
	if w.s.status == 0 {
		w.s.status, w.s.header = http.StatusOK, w.Header().Clone()
	}
	n, err := w.ResponseWriter.Write(p)
	w.s.written += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the writer.
func (w *observedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// blankWriter takes the answer to a twin, which nobody reads.
type blankWriter struct{ header http.Header }

// Header implements http.ResponseWriter.
func (w *blankWriter) Header() http.Header { return w.header }

// Write implements http.ResponseWriter.
func (*blankWriter) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (*blankWriter) WriteHeader(int) {}
