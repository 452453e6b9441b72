package semelgrpc

import (
	"errors"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

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
var effects = map[codes.Code]effect{
	codes.InvalidArgument:    kept,
	codes.NotFound:           kept,
	codes.AlreadyExists:      kept,
	codes.FailedPrecondition: kept,
	codes.OutOfRange:         kept,
	codes.Unauthenticated:    nothingDone,
	codes.PermissionDenied:   nothingDone,
	codes.Unimplemented:      nothingDone,
	codes.Aborted:            nothingDone,
}

// unkept is the error of a method that is not kept. Its caller gets it as it is.
type unkept struct{ error }

func (u *unkept) Unwrap() error { return u.error }

// judge makes of a method's error the error of a semel.Handler. NoEffect comes first,
// because a Failure inside it belongs to another call, or to a step.
func judge(err error) error {
	err = driver.ReadableError(err)
	s := statusOf(err)
	if driver.IsNoEffect(err) {
		return semel.NoEffect(&unkept{s.Err()})
	}
	if f, ok := errors.AsType[*semel.Failure](err); ok {
		return f
	}
	refusal := refusalIn(s)
	switch {
	case refusal == outcomeUnknown:
		return &unkept{err}
	case effects[s.Code()] == nothingDone, effects[s.Code()] == kept && refusal != "":
		return semel.NoEffect(&unkept{err})
	case effects[s.Code()] == kept:
		return failureOf(s)
	}
	return &unkept{err}
}

// refusalIn is the reason for which another Semel has refused a call of the method. That Semel
// keeps the result. Empty: s is no such refusal. FAILED and RESULT_NOT_KEPT are none, because
// they tell how the call ended.
func refusalIn(s *status.Status) string {
	for _, d := range s.Details() {
		info, ok := d.(*errdetails.ErrorInfo)
		if ok && info.Domain == domain && info.Reason != failed && info.Reason != resultNotKept {
			return info.Reason
		}
	}
	return ""
}

// statusOf is the status with which gRPC answers err. The message of a wrapped status
// has the text of the wrapping, except if that is only semel.NoEffect.
func statusOf(err error) *status.Status {
	if driver.IsNoEffect(err) {
		if st, ok := errors.AsType[interface {
			error
			GRPCStatus() *status.Status
		}](err); ok {
			return st.GRPCStatus()
		}
	}
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.FromContextError(err)
}

// codePrefix begins the Failure.Code of a kept status: "grpc.NotFound".
const codePrefix = "grpc."

func failureOf(s *status.Status) error {
	data, err := proto.Marshal(s.Proto())
	if err != nil { // the code and the message are kept all the same
		data = nil
	}
	return &semel.Failure{Code: codePrefix + s.Code().String(), Message: s.Message(), Data: data}
}

// keptStatus reads what failureOf wrote. A failure without Data was too large to keep
// whole, and has the code and the message only.
func keptStatus(f *semel.Failure) (*status.Status, bool) {
	name, ok := strings.CutPrefix(f.Code, codePrefix)
	if !ok {
		return nil, false
	}
	var p spb.Status
	if len(f.Data) > 0 && proto.Unmarshal(f.Data, &p) == nil {
		return status.FromProto(&p), true
	}
	for code := range effects {
		if code.String() == name {
			return status.New(code, f.Message), true
		}
	}
	return nil, false
}
