package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/cmd/semel/internal/problem"
	"github.com/semel-go/semel/internal/lasterror"
	"github.com/semel-go/semel/semelhttp"
	"github.com/semel-go/semel/store"
)

// ResultHeader lets the upstream say what its answer means, whatever the status.
const ResultHeader = "Semel-Result"

// The values of ResultHeader.
const (
	ResultFinal    = "final"     // a result to keep
	ResultNoEffect = "no-effect" // nothing was done
)

// onAnswer reads the outcome from an answer before the client gets it.
func (u *Upstream) onAnswer(res *http.Response) error {
	ctx := res.Request.Context()
	answers, _ := ctx.Value(answersKey{}).(*Answers)
	mark := answers.mark(res)
	// A redirect to a log-in page carries the path that the upstream got, which is not that
	// of the client if the upstream's URL has a path.
	v := semelhttp.Judge(semelhttp.Answer{Status: res.StatusCode, Header: res.Header, Path: res.Request.URL.Path})
	refusal := refusalIn(res.StatusCode, res.Header)
	explain(res, mark, v)
	if mark == "" && v.Effect == semelhttp.NothingDone {
		mark = ResultNoEffect
	}
	switch mark {
	case ResultFinal:
		semelhttp.Final(res.Request)
	case ResultNoEffect:
		semelhttp.NoEffect(res.Request)
	}
	if o := observedFrom(ctx); o != nil {
		o.Mark = mark
	}
	if _, keyed := semel.FromContext(ctx); keyed && endsWithConnection(res) {
		u.warnOfEnd.Do(func() {
			u.opt.Log.WarnContext(ctx, "the service ends its answers by closing the connection, so half an answer looks whole if the service dies inside it; let the service send Content-Length", "method", res.Request.Method, "status", res.StatusCode)
		})
	}
	u.renameLocation(res)
	outcome := innerOutcome(res, mark)
	removeOwnHeaders(res.Header)
	if outcome != "" {
		res.Header.Set(outcomeHeader, outcome) // for package semelhttp, and for the client
	}
	if refusal != "" && mark != ResultFinal {
		res.Header.Set(problem.RefusalHeader, refusal) // for a further Semel outside
	}
	return nil
}

// endsWithConnection reports whether nothing but the end of the connection shows where the
// body ends.
func endsWithConnection(res *http.Response) bool {
	return res.ProtoMajor == 1 && res.ContentLength < 0 && len(res.TransferEncoding) == 0 && res.StatusCode >= http.StatusOK
}

// The header by which another Semel, inside the service, says more about its answer.
const (
	outcomeHeader  = OwnPrefix + "Outcome"
	outcomeUnknown = "unknown"  // nobody knows whether the operation took effect
	outcomeNotKept = "not-kept" // it is done, and the body is not kept
)

// IsRefusal reports whether another Semel, inside the service, says by the headers of its
// answer that this is no answer of the service, or that it does not know the outcome. A list
// of statuses does not make such an answer a result.
func IsRefusal(status int, h http.Header) bool { return isUnknown(h) || refusalIn(status, h) != "" }

// refusalIn is the code of another Semel's refusal. Empty: the answer is none. A service that
// passes on the headers of another Semel may add them to its own result, and no refusal has a
// status below 400.
func refusalIn(status int, h http.Header) string {
	if status < http.StatusBadRequest {
		return ""
	}
	return h.Get(problem.RefusalHeader)
}

func isUnknown(h http.Header) bool { return h.Get(outcomeHeader) == outcomeUnknown }

// innerOutcome is the value of outcomeHeader that stays in an answer, or "".
func innerOutcome(res *http.Response, mark string) string {
	v := res.Header.Get(outcomeHeader)
	switch {
	case res.StatusCode < http.StatusOK:
		return ""
	case v == outcomeNotKept, v == outcomeUnknown && mark == "":
		return v
	}
	return ""
}

// explain says in the record, and in events, that the service has answered, where package
// semelhttp would speak of a handler. It is not used for an answer that is kept.
func explain(res *http.Response, mark string, v semelhttp.Verdict) {
	switch {
	case mark == ResultFinal || mark == "" && v.Effect == semelhttp.Kept:
		return
	case mark == ResultNoEffect:
		v.Reason = "the answer, or an option of the proxy, says that nothing was done"
	}
	semelhttp.Explain(res.Request, fmt.Sprintf("the service answered %d: %s", res.StatusCode, v.Reason))
}

// onInformational runs for each informational answer (1xx). After it,
// httputil.ReverseProxy passes that answer on in a trace of its own.
func onInformational(_ int, h textproto.MIMEHeader) error {
	removeOwnHeaders(http.Header(h))
	return nil
}

// removeOwnHeaders removes the headers that only the proxy may set.
func removeOwnHeaders(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, OwnPrefix) {
			delete(h, name)
		}
	}
}

// answerWriter writes an answer to which net/http adds no Content-Type.
type answerWriter struct {
	http.ResponseWriter
	request *http.Request // of the client
	timer   *answerTimer  // nil: the proxy has read the whole request body
}

// WriteHeader implements http.ResponseWriter.
func (w answerWriter) WriteHeader(status int) {
	if h := w.Header(); status >= http.StatusOK && len(h["Content-Type"]) == 0 {
		h["Content-Type"] = nil // present but empty, so that net/http adds none
	}
	// The rest of a body must not be read as the next request. In full-duplex mode
	// net/http does not prevent that for a body that was not read to its end.
	if status >= http.StatusOK && w.timer != nil && !w.timer.bodyRead() {
		w.Header().Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the writer.
func (w answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// onFailure answers the client if the upstream sent no answer.
func (u *Upstream) onFailure(w http.ResponseWriter, r *http.Request, err error) {
	p, mark := problem.UpstreamLost, ""
	switch {
	case errors.Is(err, errBodyTimeout):
		p = problem.BodyTimeout
	case errors.Is(err, semel.ErrLeaseLost):
	case NotSent(err):
		semelhttp.NoEffect(r)
		p, mark = problem.Unreachable, ResultNoEffect
	case errors.Is(err, context.DeadlineExceeded):
		p = problem.UpstreamTimeout
	}
	shown := input.WithoutQuotes(err)
	if _, ok := lasterror.ByCode(p.Code); ok {
		semelhttp.Explain(r, lasterror.Text(p.Code, shown))
	}
	if o := observedFrom(r.Context()); o != nil {
		o.Mark, o.Err = mark, err
	}
	level := slog.LevelWarn
	if errors.Is(err, context.Canceled) && !errors.Is(err, semel.ErrLeaseLost) {
		level = slog.LevelDebug // the client has hung up
	}
	if a, ok := w.(answerWriter); ok {
		r = a.request // its path is that of the client
	}
	fields := []any{"code", p.Code}
	if x, ok := semel.FromContext(r.Context()); ok {
		k := store.Key{Operation: x.Operation(), Tenant: x.Tenant(), Value: x.Key()}
		fields = append(fields, "operation", k.Operation, "tenant", k.Tenant, "key", k.Short())
	}
	u.opt.Log.Log(r.Context(), level, "the upstream did not answer", append(fields, "method", input.Method(r), "path", input.Path(r.URL), "error", shown)...)
	semelhttp.AllowOrigin(w, r, u.opt.RefusalOrigins)
	problem.Write(w, p)
}
