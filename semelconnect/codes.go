package semelconnect

import (
	"encoding/json"
	"errors"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
)

// effect says what an error tells about the work of a method.
type effect int

const (
	inDoubt     effect = iota // the work may have been done
	kept                      // the error is the answer
	nothingDone               // the method may run again
)

// effects is the table of the package documentation. Codes that it does not have are
// in doubt.
var effects = map[connect.Code]effect{
	connect.CodeInvalidArgument:    kept,
	connect.CodeNotFound:           kept,
	connect.CodeAlreadyExists:      kept,
	connect.CodeFailedPrecondition: kept,
	connect.CodeOutOfRange:         kept,
	connect.CodeUnauthenticated:    nothingDone,
	connect.CodePermissionDenied:   nothingDone,
	connect.CodeUnimplemented:      nothingDone,
	connect.CodeAborted:            nothingDone,
}

// unkept is the error of a method that is not kept. Its caller gets it as it is.
type unkept struct{ error }

func (u *unkept) Unwrap() error { return u.error }

// judge makes of a method's error the error of a semel.Handler. NoEffect comes first,
// because a Failure inside it belongs to another call, or to a step.
func judge(err error) error {
	err = driver.ReadableError(err)
	if driver.IsNoEffect(err) {
		return semel.NoEffect(&unkept{err})
	}
	if f, ok := errors.AsType[*semel.Failure](err); ok {
		return f
	}
	e, ok := errors.AsType[*connect.Error](err)
	refusal := "" // of another Semel that the method has called, and that keeps the result
	if ok {
		refusal = refusalIn(e)
	}
	if refusal != "" {
		err = passOn(e, refusal)
	}
	switch {
	case refusal == outcomeUnknown:
		return &unkept{err}
	case ok && effects[e.Code()] == nothingDone, ok && effects[e.Code()] == kept && refusal != "":
		return semel.NoEffect(&unkept{err})
	case ok && effects[e.Code()] == kept:
		return failureOf(e)
	}
	return &unkept{err}
}

// passOn makes the refusal of another Semel an error of the method, for a further Semel
// outside: Connect does not send the headers of an error that a client has received.
func passOn(e *connect.Error, refusal string) error {
	own := connect.NewError(e.Code(), e.Unwrap())
	for _, d := range e.Details() {
		own.AddDetail(d)
	}
	own.Meta().Set(refusalHeader, refusal)
	for _, name := range []string{outcomeHeader, "Retry-After"} {
		if values := e.Meta().Values(name); len(values) > 0 {
			own.Meta().Set(name, values[0])
		}
	}
	return own
}

// codePrefix begins the Failure.Code of a kept error: "connect.not_found".
const codePrefix = "connect."

// detail is a detail of a kept error.
type detail struct {
	Type  string `json:"type"`
	Value []byte `json:"value"`
}

func failureOf(e *connect.Error) error {
	var details []detail
	for _, d := range e.Details() {
		details = append(details, detail{d.Type(), d.Bytes()})
	}
	data, err := json.Marshal(details)
	if err != nil { // the code and the message are kept all the same
		data = nil
	}
	return &semel.Failure{Code: codePrefix + e.Code().String(), Message: e.Message(), Data: data}
}

// errorOf makes the answer of a kept failure. A failure without Data was too large to
// keep whole, and has the code and the message only.
func errorOf(f *semel.Failure, replayed bool) error {
	name, ours := strings.CutPrefix(f.Code, codePrefix)
	var code connect.Code
	if !ours || code.UnmarshalText([]byte(name)) != nil {
		return refuse(connect.CodeFailedPrecondition, result, 0, "the operation failed, and is not tried again with this key: "+f.Error())
	}
	e := connect.NewError(code, errors.New(f.Message))
	var details []detail
	if json.Unmarshal(f.Data, &details) == nil {
		for _, d := range details {
			if made, err := connect.NewErrorDetail(&anypb.Any{TypeUrl: "type.googleapis.com/" + d.Type, Value: d.Value}); err == nil {
				e.AddDetail(made)
			}
		}
	}
	if replayed {
		e.Meta().Set(replayHeader, "true")
	}
	return e
}
