package semelgrpc

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// A repeat does not mend a record, so there is no RetryInfo.
func TestRefusalOf_RecordUnreadable_FailedPrecondition(t *testing.T) {
	s := status.Convert(refusalOf(t.Context(), unaryCall, &semel.Error{Reason: store.ErrCorrupt, Cause: errors.New("secret")}))
	info, ok := s.Details()[0].(*errdetails.ErrorInfo)
	if s.Code() != codes.FailedPrecondition || len(s.Details()) != 1 || !ok || info.Reason != "RECORD_UNREADABLE" || strings.Contains(s.Message(), "secret") {
		t.Errorf("%v, details %v", s, s.Details())
	}
}
