package upstream

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
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
	for name := range res.Header {
		if strings.HasPrefix(name, ownPrefix) {
			delete(res.Header, name) // the client must not take the upstream's words for the proxy's
		}
	}
	return nil
}

// failed answers for an upstream that did not.
func (u *Upstream) failed(w http.ResponseWriter, r *http.Request, err error) {
	p := problem.UpstreamLost
	switch {
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
