package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/history"
	"github.com/semel-go/semel/store"
)

// onlySagas refuses a verdict about a saga, and a reopening.
const onlySagas = "This is a saga, and a verdict would not undo its steps. A stuck saga takes retry, back or skip; a saga that has ended is not reopened."

// resolve gives a verdict about a call in doubt.
func (c *Console) resolve(ctx context.Context, r store.Record, verb, who string, form url.Values) error {
	v := semel.DidNotHappen()
	switch verb {
	case "failed":
		v = semel.FailedForGood(&semel.Failure{Code: "resolved_failed", Message: "an operator found that it failed"})
	case "happened":
		o, err := answerIn(form, isHTTP(&r))
		if err != nil {
			return err
		}
		v = semel.Happened(o)
	}
	g, err := semel.New(c.store, &semel.Options{OnDoubt: semel.Park, Retention: c.options.Retention, MaxOutcome: 2 << 20, Holder: history.ResolvedBy + who})
	if err != nil {
		return err
	}
	return g.Resolve(ctx, r, v)
}

// reopen lets a failed call run again.
func (c *Console) reopen(ctx context.Context, r store.Record, who string) error {
	g, err := semel.New(c.store, &semel.Options{Retention: c.options.Retention, Holder: history.ReopenedBy + who})
	if err != nil {
		return err
	}
	err = g.Reopen(ctx, r, who)
	if e, ok := errors.AsType[*semel.Error](err); ok && errors.Is(err, semel.ErrInvalid) {
		return badInput("Nothing was changed: " + e.Cause.Error())
	}
	return err
}

// notJSON says what the result of a step has to be, and names its field; empty if it is JSON,
// or none is given.
func notJSON(result []byte) (field, hint string) {
	if len(result) == 0 || json.Valid(result) {
		return "", ""
	}
	return "result", `; the result has to be JSON: a text has quotes, such as "tx-1"`
}

// isHTTP reports whether package semelhttp made the record, so that its answer has a
// status.
func isHTTP(r *store.Record) bool { return strings.HasPrefix(r.Fingerprint.Alg, "semelhttp/") }

// answerIn is the answer that a form gives to all duplicates. Callers must be able to
// read it: a request over HTTP has a status, and a call of semel.Do a result in JSON.
func answerIn(form url.Values, overHTTP bool) (store.Outcome, error) {
	body := form.Get("body")
	if !overHTTP {
		if !json.Valid([]byte(body)) {
			return store.Outcome{}, badField("body", "The result is not JSON, so no caller could read it. Write it as json.Marshal does.")
		}
		return store.Outcome{Body: []byte(body), Codec: "json"}, nil
	}
	code, err := strconv.Atoi(form.Get("status"))
	if err != nil || code < 200 || code > 599 {
		return store.Outcome{}, badField("status", fmt.Sprintf("The status is %q; it must be a number from 200 to 599.", form.Get("status")))
	}
	o := store.Outcome{Code: code, Body: []byte(body)}
	for line := range strings.Lines(form.Get("header")) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		name = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))
		if !ok || name == "" || strings.HasPrefix(name, "Set-Cookie") {
			return store.Outcome{}, badField("header", fmt.Sprintf("The header %q is not a line “Name: value”; cookies are not kept.", strings.TrimSpace(line)))
		}
		o.Header = append(o.Header, store.Header{Name: name, Value: strings.TrimSpace(value)})
	}
	return o, nil
}
