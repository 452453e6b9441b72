// Package lasterror explains the codes in records, and names the operator's next step for
// each. A code is in the last error of a record that semel proxy has written,
// or it is the code of a kept failure.
package lasterror

import (
	"regexp"
	"strings"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// Meaning explains a code.
type Meaning struct {
	Code     string // if it ends with *, the beginning of many codes
	Happened string // in one sentence, without a full stop
	Next     string // what an operator does about it
}

// The codes of semel proxy.
const (
	UpstreamLost        = "upstream_lost"
	UpstreamTimeout     = "upstream_timeout"
	UpstreamUnreachable = "upstream_unreachable"
)

const (
	askService   = "look in the service, or in its log, whether the request took effect" + eachPolicy
	eachPolicy   = ". Under park decide by semel inspect resolve; under retry the next repeat is sent again"
	underPark    = ", and decide by semel inspect resolve"
	underRetry   = "; the next repeat is sent again"
	mendAndAgain = "mend the cause, and let the next call run by semel inspect reopen"
)

// Table explains each code that a program of this repository stores in a record. The page
// docs/reference/errors.md has the same rows.
var Table = []Meaning{
	{UpstreamLost, "the request was sent to the service, and no whole answer came", askService},
	{UpstreamTimeout, "the request was sent to the service, and no answer came in time", askService + ". If the service needs longer, raise --upstream-timeout"},
	{UpstreamUnreachable, "the service could not be reached, so nothing was sent", "start the service, or correct --upstream; the next repeat is sent"},
	{"status_*", "the service answered with the status in the code, which leaves open whether the request took effect",
		askService + ". If the status always says that nothing was done, name it in --no-effect-statuses; if it is a result, in --final-statuses"},
	{protocol.CodeExhausted, "the function has failed as often as is allowed", mendAndAgain},
	{"failure_not_kept", "it failed for good, and the failure was too large to keep", "look at the log of the service; return a shorter message"},
	{"resolved_failed", "an operator has found that it failed", "nothing: it is the answer. Against a wrong verdict: semel inspect reopen, if the call has no steps"},
	{"deadline_exceeded", "the deadline of the saga has passed, and its steps are undone", "nothing, or start a new saga"},
	{"event_missing", "an event for which the saga waited did not come in time, and its steps are undone", "find out why the sender was silent; start a new saga"},
	{"turned_back_by_operator", "an operator has turned the saga back, and its steps are undone", "nothing, or start a new saga"},
	{"http_*", "the service has refused the message with the status in the code", "correct the message or the service; then redrive the dead letter"},
	{"body_too_large", "the message is larger than --max-body, and was not sent", "raise --max-body, and redrive the dead letter"},
	{"event_invalid", "the message is no valid CloudEvent, and was not sent", "correct its producer"},
	{"grpc.*", "the method has answered with the gRPC code in the name", "nothing: duplicates get the same answer. Against a wrong one: semel inspect reopen, if the call has no steps"},
	{"connect.*", "the method has answered with the Connect code in the name", "nothing: duplicates get the same answer. Against a wrong one: semel inspect reopen, if the call has no steps"},
}

// handlerStatus takes the place of status_* for a handler of package semelhttp, which has not
// the options of semel proxy.
var handlerStatus = Meaning{Happened: "the handler answered with the status in the code, which leaves open whether the request took effect",
	Next: askService + ". If the status says that nothing was done, let the handler call semelhttp.NoEffect, or set Options.Judge; if it is a result, semelhttp.Final"}

// proxyOperation is the operation of the records of semel proxy, whose service is the handler.
const proxyOperation = "http"

// statusText matches the start of the last error of an answer that leaves doubt, in package semelhttp
// and in semel deliver.
var statusText = regexp.MustCompile(`^the (handler|service) answered ([1-5][0-9]{2})\b`)

// ByCode explains a code.
func ByCode(code string) (Meaning, bool) {
	for _, m := range Table {
		if start, many := strings.CutSuffix(m.Code, "*"); m.Code == code || many && strings.HasPrefix(code, start) {
			m.Code = code
			return m, true
		}
	}
	return Meaning{}, false
}

// Text is the last error of a record for a code of the table: the sentence, the code, and
// the cause if there is one.
func Text(code string, cause error) string {
	m, _ := ByCode(code)
	text := m.Happened + " (" + code + ")"
	if cause != nil {
		text += ": " + cause.Error()
	}
	return text
}

// Explain explains the code of a record; false if it has none of the table. Its next step is for
// the policy of the record alone.
func Explain(r *store.Record) (Meaning, bool) {
	m, ok := explain(r)
	step := underRetry
	if r.Policy == store.Park {
		step = underPark
	}
	m.Next = strings.Replace(m.Next, eachPolicy, step, 1)
	return m, ok
}

func explain(r *store.Record) (Meaning, bool) {
	if r.State == store.Failed {
		return ByCode(protocol.FailureCode(&r.Outcome))
	}
	for _, m := range Table {
		if strings.Contains(r.LastError, Text(m.Code, nil)) {
			return m, true
		}
	}
	if m := statusText.FindStringSubmatch(r.LastError); m != nil {
		code := "status_" + m[2]
		if m[1] == "handler" && r.Key.Operation != proxyOperation {
			return Meaning{code, handlerStatus.Happened, handlerStatus.Next}, true
		}
		return ByCode(code)
	}
	return ByCode(r.LastError)
}

// Display is the last error of a record for people: in place of a bare code of the table
// there is its sentence. Empty if the record tells of a decision instead.
func Display(r *store.Record) string {
	if protocol.IsDecision(r) {
		return ""
	}
	if _, ok := ByCode(r.LastError); ok {
		return Text(r.LastError, nil)
	}
	return r.LastError
}
