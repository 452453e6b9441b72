package upstream

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/problem"
	"github.com/semel-go/semel/semelhttp"
)

// resultHeader is how the upstream can say what its answer means, whatever the
// status: "final" is a result to keep, "no-effect" that nothing was done.
const resultHeader = "Semel-Result"

// received looks at an answer before it goes to the client.
func received(res *http.Response) error {
	switch res.Header.Get(resultHeader) {
	case "final":
		semelhttp.Final(res.Request)
	case "no-effect":
		semelhttp.NoEffect(res.Request)
	default:
		if res.StatusCode >= http.StatusInternalServerError && res.Request.Context().Value(keep5xxKey{}) != nil {
			semelhttp.Final(res.Request)
		}
	}
	disown(res.Header)
	return nil
}

// ahead looks at what comes before an answer (1xx). httputil.ReverseProxy passes
// that on in the trace of its own, which is called after this.
func ahead(_ int, h textproto.MIMEHeader) error {
	disown(http.Header(h))
	return nil
}

// disown removes what the client could take for the proxy's words.
func disown(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, ownPrefix) {
			delete(h, name)
		}
	}
}

// asIs is a writer of answers of which net/http guesses nothing.
type asIs struct {
	http.ResponseWriter
	begin *begin // of the request; nil: its whole body is here
}

// WriteHeader implements http.ResponseWriter.
func (w asIs) WriteHeader(status int) {
	if h := w.Header(); status >= http.StatusOK && len(h["Content-Type"]) == 0 {
		h["Content-Type"] = nil // there, and nothing: so it stays
	}
	// What comes yet of a body must not be taken for a request. Of one that could
	// not be read to its end the server does not see to that in full duplex.
	if status >= http.StatusOK && w.begin != nil && !w.begin.isWhole() {
		w.Header().Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w asIs) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// failed answers for an upstream that did not.
func (u *Upstream) failed(w http.ResponseWriter, r *http.Request, err error) {
	p := problem.UpstreamLost
	switch {
	case errors.Is(err, errSilent):
		p = problem.BodyTimeout
	case errors.Is(err, semel.ErrLeaseLost):
	case isNotSent(err):
		semelhttp.NoEffect(r)
		p = problem.Unreachable
	case errors.Is(err, context.DeadlineExceeded):
		p = problem.UpstreamTimeout
	}
	level := slog.LevelWarn
	if errors.Is(err, context.Canceled) && !errors.Is(err, semel.ErrLeaseLost) {
		level = slog.LevelDebug // the client has left
	}
	u.opt.Log.Log(r.Context(), level, "the upstream did not answer", "code", p.Code, "method", r.Method, "error", err)
	problem.Write(w, p)
}

func isNotSent(err error) bool {
	_, ok := errors.AsType[errNotSent](err)
	return ok
}
